"""Settings -> `RunConfig`, or one sentence that says what is wrong with them and who said it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from mmbu_async.config.run import RunConfig
from mmbu_async.config.secrets import masked
from mmbu_async.config.settings import JudgeConfig
from mmbu_async.errors import ConfigError
from mmbu_async.wrong_values import wrong

Layer = tuple[str, Mapping[str, Any]]
"""Where settings came from, in words, and the settings."""
_HIDDEN = ("api_key_env", "params")
"""Settings whose value a message does not repeat: somebody may have put a key there."""


def build_config(
    settings: Mapping[str, Any], origin: str = "settings", layers: Sequence[Layer] = ()
) -> RunConfig:
    """Validate; pydantic's errors become one sentence. It says which of the `layers` set what is wrong, the
    last that did, and `origin` where none did."""

    def origin_of(place: tuple[str, ...]) -> str:
        return next((name for name, layer in reversed(layers) if _holds(layer, place)), origin)

    return _validated(settings, origin_of)


def _validated(settings: Mapping[str, Any], origin: Callable[[tuple[str, ...]], str]) -> RunConfig:
    """`origin` says where the setting at a place came from."""
    try:
        return RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        # A name that is none explains why another one is missing.
        found = error.errors()
        first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
        loc = tuple(str(part) for part in first["loc"])
        place, where = _place(loc), origin(loc)
        if where == "the environment":
            where = f"the environment variable MMBU_{'_'.join(loc[: 1 + (loc[0] == 'judge')]).upper()}"
        if first["type"] == "extra_forbidden":
            known = list((JudgeConfig if loc[0] in ("judge", "panel") else RunConfig).model_fields)
            near = difflib.get_close_matches(loc[-1], known, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else f"; known are: {', '.join(known)}."
            raise ConfigError(f"{where}: there is no setting '{place}'{hint}") from None
        if first["type"] == "missing":
            give = "" if len(loc) > 1 else f"; give --{place} or MMBU_{place.upper()}"
            raise ConfigError(f"{where}: the setting '{place}' is missing{give}.") from None
        shown = (
            ""
            if loc == ("panel",) or first["input"] is None or any(part in _HIDDEN for part in loc)
            else f" = {masked(first['input'])}"
        )
        raise ConfigError(f"{where}: setting '{place}'{shown}: {wrong(first)}.") from None


def _place(loc: tuple[str, ...]) -> str:
    """A setting's name, with the tables in which it stands; those of a list are counted from 1."""
    return ".".join(str(int(part) + 1) if part.isdecimal() else part for part in loc)


def _holds(layer: Mapping[str, Any], place: tuple[str, ...]) -> bool:
    """Whether a layer set what stands at a place, or the table in which it stands."""
    value: Any = layer
    for part in place:
        if not isinstance(value, Mapping):
            return True
        if part not in value:
            return False
        value = value[part]
    return True
