"""The TOML file that describes a benchmark of the user's own: what it may say, and where its mistakes stand.

    name = "site-b-cells"

    [source]
    tables = ["rows.csv"]
    image_columns = ["image"]

    [columns]
    id = "uid"
    question = "question"
    answer = "label"
    options = "choices"

    [prompt]
    template = \"\"\"{question}

    {options}

    Answer with the letter of the correct option inside <answer> tags.\"\"\"

    [scorer]
    kind = "choice"

Every mistake is one sentence that names the file, the line and the key.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import PureWindowsPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import ErrorDetails

from mmbu_async.errors import ConfigError
from mmbu_async.tasks.registry import NAMES
from mmbu_async.wrong_values import wrong

Kind = Literal["choice", "judge", "exact", "number", "boxes", "masks"]
FILLED = ("question", "options", "labels")
"""What a template can name beside the columns of [strata]."""

_PLACE = re.compile(r"\{\{([A-Za-z_][\w .-]*)\}\}|\{([A-Za-z_][\w .-]*)\}")
"""`{name}` is filled in, `{{name}}` is sent as `{name}`; other braces, as those of JSON, are left alone."""
_HEADER = re.compile(r"\[\[?\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")

_Name = Annotated[str, Field(min_length=1)]
_Names = Annotated[tuple[_Name, ...], Field(min_length=1)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Source(_Part):
    hub: str = ""
    configs: tuple[_Name, ...] = ()
    split: str = "train"
    tables: _Names = ("metadata.jsonl", "metadata.tsv", "*.csv", "*.parquet")
    image_columns: _Names = ("file_name", "image")
    image_folders: tuple[str, ...] = Field(default=("", "images"), min_length=1)
    archives: tuple[_Name, ...] = ()

    @field_validator("tables", "archives", "image_folders")
    @classmethod
    def _inside(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        """A description may come from others, and says nothing of what lies beside the data."""
        for name in value:
            path = PureWindowsPath(name)
            if ".." in path.parts or path.anchor:
                raise ValueError(f"'{name}' leads out of the data's folder; name what is in it")
        return value


class _Columns(_Part):
    question: _Name
    answer: _Name
    id: str = ""
    """'' numbers the rows."""
    options: str = ""
    family: str = ""


class _PromptText(_Part):
    template: str = Field(min_length=1)
    system: str | None = None


class _Scorer(_Part):
    kind: Kind
    tolerance: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """Of `number`: largest difference that is still right."""


class _Strata(_Part):
    columns: tuple[_Name, ...] = ()


class File(_Part):
    """What the file says."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    title: str = ""
    licence: str = "not stated"
    citation: str = "not stated"
    source: _Source = _Source()
    columns: _Columns
    prompt: _PromptText
    scorer: _Scorer
    strata: _Strata = _Strata()


class Described:
    """A file that was read, and where in it each thing stands."""

    def __init__(self, file: File, text: str, where: str) -> None:
        self.file = file
        self._text = text
        self._where = where

    def place(self, table: str, key: str) -> str:
        """`cells.toml, line 9`, for error messages."""
        return f"{self._where}, {_line(self._text, table, key)}"

    def fill(self, values: Mapping[str, str]) -> str:
        """The template with its places filled, in one pass."""
        template = self.file.prompt.template
        return _PLACE.sub(lambda place: f"{{{place[1]}}}" if place[1] else values.get(place[2], ""), template)

    def shows(self, place: str) -> bool:
        """Whether the template has a place of that name."""
        return any(found[2] == place for found in _PLACE.finditer(self.file.prompt.template))

    def check(self) -> None:
        """What pydantic cannot know. Raises ConfigError."""
        file, kind = self.file, self.file.scorer.kind
        if file.name in NAMES:
            raise self._error("", "name", f"'{file.name}' is a benchmark of mmbu-async; choose another name")
        if kind == "choice" and not file.columns.options:
            raise self._error(
                "scorer", "kind", "a choice needs options; name their column under [columns] options"
            )
        if file.scorer.tolerance and kind != "number":
            raise self._error("scorer", "tolerance", f"means nothing to {kind}; leave it out, or use number")
        for found in _PLACE.finditer(file.prompt.template):
            if found[2] is not None:
                self._check_place(found[2])

    def _check_place(self, name: str) -> None:
        file = self.file
        if name in (file.columns.answer, "answer"):
            raise self._error("prompt", "template", f"{{{name}}} would show the model the answer")
        if name in ("options", "labels") and not file.columns.options:
            raise self._error(
                "prompt", "template", f"{{{name}}} has nothing to show; name a column under [columns] options"
            )
        if name not in FILLED and name not in file.strata.columns:
            raise self._error(
                "prompt",
                "template",
                f"{{{name}}} is neither one of {', '.join(FILLED)} nor a column of [strata]; list it there, "
                f"correct it, or write {{{{{name}}}}} where these words themselves are meant",
            )

    def _error(self, table: str, key: str, text: str) -> ConfigError:
        named = f"{table}.{key}" if table else key
        return ConfigError(f"{self.place(table, key)}: {named}: {text}.")


def described(text: str, where: str) -> Described:
    """Read a TOML text. Raises ConfigError naming `where`, line and key."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: is not valid TOML: {error}.") from None
    try:
        found = Described(File.model_validate(raw), text, where)
    except ValidationError as error:
        raise ConfigError(_sentence(error, text, where)) from None
    found.check()
    return found


def _sentence(error: ValidationError, text: str, where: str) -> str:
    first = error.errors()[0]
    names = [str(part) for part in first["loc"]]
    table, key = (names[0], names[1]) if len(names) > 1 else ("", names[0])
    return f"{where}, {_line(text, table, key)}: {'.'.join(names)}{_problem(first, table, key)}."


def _problem(found: ErrorDetails, table: str, key: str) -> str:
    given = found["input"]
    match found["type"]:
        case "missing":
            return f": is missing; add it{f' under [{table}]' if table else ''}"
        case "extra_forbidden":
            known = ", ".join(_settings(table))
            return f": there is no such setting; known{f' under [{table}]' if table else ''} are {known}"
        case "tuple_type":
            return f': must be a list, as in {key} = ["…"], not {given!r}'
        case "model_type":
            return f": must be a table under the header [{key}], not {given!r}"
        case "too_short" | "string_too_short":
            return ": is empty; fill it in, or leave it out"
        case "string_pattern_mismatch":
            return f" = {given!r}: may hold small letters, digits, '.', '_' and '-' only"
        case "value_error":
            return f": {wrong(found)}"
        case _:
            return f" = {given!r}: {wrong(found)}"


def _settings(table: str) -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "": File,
        "source": _Source,
        "columns": _Columns,
        "prompt": _PromptText,
        "scorer": _Scorer,
        "strata": _Strata,
    }
    return list(parts[table].model_fields)


def _line(text: str, table: str, key: str) -> str:
    """`line N`: that of the key, or of its table, or the first."""
    current, fallback = "", 1
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        header = _HEADER.match(stripped)
        if header:
            current = header[1]
            if current in (table, key) and fallback == 1:
                fallback = number
        elif current == table and re.match(rf'["\']?{re.escape(key)}["\']?\s*=', stripped):
            return f"line {number}"
    return f"line {fallback}"
