"""Fatal failures in plain words, with what to do."""

from __future__ import annotations

from mmbu_async.config import CallSettings, JudgeConfig
from mmbu_async.model import FATAL_KINDS, Failure, FailureKind
from mmbu_async.pipeline.parameters import give_up_parameter, refused_parameter


def concerns_every_row(failure: Failure, settings: CallSettings, *, proven: bool) -> bool:
    """Whether no other row will escape it. `proven`: requests of these settings have been answered, so that
    what is said of a parameter can only be due to the row."""
    if failure.kind in FATAL_KINDS:
        return True
    return not proven and refused_parameter(failure, settings) is not None


def explain(failure: Failure, settings: CallSettings) -> str:
    """One sentence: what, where, what to do."""
    words = f" ({failure.message})" if failure.message else ""
    url = settings.url
    match failure.kind:
        case FailureKind.AUTH if failure.status == 403 or "location" in failure.message:
            return (
                f"{url} denies access with the key in {settings.key_variable}{words}: it lacks a permission, "
                "or is not served from here; set another key, then resume."
            )
        case FailureKind.AUTH:
            return f"{url} refuses the key in {settings.key_variable}{words}: set a valid key, then resume."
        case FailureKind.MODEL_NOT_FOUND:
            return (
                f"{url} does not know the model '{settings.model}'{words}: check "
                f"{settings.flag('model')} and {settings.flag('base_url')}."
            )
        case FailureKind.QUOTA:
            return f"{url}: the account's quota or credit is used up{words}: top it up, then resume."
        case FailureKind.BAD_REQUEST if (name := refused_parameter(failure, settings)) is not None:
            then = (
                "`mmbu rejudge` asks the judge without it"
                if isinstance(settings, JudgeConfig)
                else "a run that was begun with it is begun anew with --new-run"
            )
            return (
                f"{url} refuses the parameter '{name}' for {settings.model}{words}: "
                f"{give_up_parameter(name, settings)}; {then}."
            )
        case _:
            return f"{settings.model} at {url}: {failure.message}"
