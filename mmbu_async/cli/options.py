"""Every field of the settings as a flag, its help from the field's own docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic.fields import FieldInfo

from mmbu_async.config import CLUSTER, JudgeConfig, RunConfig, parse_json
from mmbu_async.errors import ConfigError

JUDGE_PANEL = "Judge"
_TABLES = {"params": "param", "where": "where", "dask_options": "dask-option"}
"""Fields that are tables, and the repeatable KEY=VALUE flag that fills them."""
_FIXED = {"benchmark", "judge"}

_PANELS = {
    JUDGE_PANEL: ("panel", "verdict", "judge_coverage"),
    "The model under test": ("model", "endpoint", "base_url", "api_key_env", "stream"),
    "Sampling": ("max_tokens", "temperature", "seed", "image_detail", "params"),
    "Rows": ("data", "limit", "task", "where"),
    "Several machines": CLUSTER,
    "Limits and money": (
        *("concurrency", "rpm", "tpm", "max_cost", "input_price", "output_price", "prompt_caching"),
        *("max_attempts", "max_retry_time", "timeout", "connect_timeout", "idle_timeout"),
        *("batch", "batch_size", "batch_poll"),
    ),
}


def with_settings(
    only: Collection[str] | None = None, *, judge: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a command every setting as a flag; it receives those that the user gave as `settings`.

    `only` leaves these of the run's own settings, beside the judge's, which `judge` False leaves out. A
    parameter of the command's own takes the place of the setting of that name.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(command, eval_str=True)
        own = [p for p in signature.parameters.values() if p.name != "settings"]
        fields = {n: info for n, info in RunConfig.model_fields.items() if only is None or n in only}
        flags = {**_flags(fields, ""), **(_flags(JudgeConfig.model_fields, "judge_") if judge else {})}
        for parameter in own:
            flags.pop(parameter.name, None)

        def wrapped(**given: Any) -> Any:
            settings = {name: given.pop(name) for name in flags if name in given}
            return command(**given, settings=_gather(settings))

        parameters = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[annotation, option]
            )
            for name, (annotation, option) in flags.items()
        ]
        keyword = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own]
        wrapped.__signature__ = inspect.Signature([*keyword, *parameters])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {p.name: p.annotation for p in (*keyword, *parameters)}
        wrapped.__name__ = command.__name__
        wrapped.__doc__ = command.__doc__
        return wrapped

    return decorate


def _flags(fields: dict[str, FieldInfo], prefix: str) -> dict[str, tuple[Any, Any]]:
    return {prefix + name: _flag(name, info, prefix) for name, info in fields.items() if name not in _FIXED}


def _flag(name: str, info: FieldInfo, prefix: str) -> tuple[Any, Any]:
    """The Python type that typer parses, and the option itself."""
    flag = "--" + (prefix + _TABLES.get(name, name)).replace("_", "-")
    panel = JUDGE_PANEL if prefix else next((p for p, names in _PANELS.items() if name in names), "Run")
    kind = _plain_type(info.annotation)
    several = name in _TABLES or name == "task"
    annotation: Any = (list[str] if several else kind) | None
    help_text = (info.description or name.replace("_", " ")).split("\n\n")[0].replace("\n", " ")
    if info.default is not None and name not in _TABLES and not info.is_required() and info.default != ():
        help_text = f"{help_text.rstrip('.')} (default {_shown(info.default)})."
    names = [flag, f"--no-{flag[2:]}"] if kind is bool else [flag]
    metavar = None
    if name == "panel":
        metavar = "FILE"
        help_text = (
            "TOML file with a `panel` table for each further judge, which can hold what the --judge-… flags "
            "set, and `verdict`; `none`: no further judge."
        )
    elif name in _TABLES:
        metavar = "COLUMN=VALUE" if name == "where" else "KEY=JSON"
    elif get_origin(info.annotation) is not None and kind is str and name == "endpoint":
        metavar = "|".join(get_args(info.annotation))
    return annotation, typer.Option(
        names[0] if len(names) == 1 else "/".join(names),
        help=help_text,
        rich_help_panel=panel,
        show_default=False,
        metavar=metavar,
    )


def _shown(default: Any) -> str:
    if isinstance(default, bool):
        return "yes" if default else "no"
    return f"{default:g}" if isinstance(default, float) else str(default)


def _plain_type(annotation: Any) -> Any:
    """`float | None` -> float; a Literal -> str, whose values pydantic checks."""
    choices = [kind for kind in get_args(annotation) if kind is not type(None)]
    for kind in (*choices, annotation):
        if kind in (bool, int, float, str, Path):
            return kind
    return str


def _gather(given: dict[str, Any]) -> dict[str, Any]:
    """Flags that were given, as nested settings."""
    settings: dict[str, Any] = {}
    judge: dict[str, Any] = {}
    for name, value in given.items():
        if value is None or value == []:
            continue
        bare = name.removeprefix("judge_")
        of_judge = name.startswith("judge_") and bare in JudgeConfig.model_fields
        bare = bare if of_judge else name
        target = judge if of_judge else settings
        target[bare] = _pairs(bare, value) if bare in _TABLES else value
    if judge:
        settings["judge"] = judge
    if settings.get("panel") == "none":
        # Without a panel its verdict cannot be asked for either, whatever was in force.
        settings = {"verdict": "judge"} | settings | {"panel": []}
    return settings


def _pairs(field: str, texts: list[str]) -> dict[str, Any]:
    pairs: dict[str, Any] = {}
    for text in texts:
        flag = _TABLES[field]
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--{flag} {text}: write it as --{flag} NAME=VALUE.")
        key = key.strip()
        if key in pairs:
            raise ConfigError(f"--{flag} {text}: {key} is given twice, and only one value can hold.")
        pairs[key] = value if field == "where" else parse_json(value)
    return pairs
