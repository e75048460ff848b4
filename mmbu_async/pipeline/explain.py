"""Fatal failures in plain words, with what to do."""

from __future__ import annotations

from mmbu_async.config import CallSettings
from mmbu_async.model import Failure, FailureKind


def explain(failure: Failure, settings: CallSettings) -> str:
    """One sentence: what, where, what to do."""
    words = f" ({failure.message})" if failure.message else ""
    url = settings.url
    match failure.kind:
        case FailureKind.AUTH if failure.status == 403:
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
        case _:
            return f"{settings.model} at {url}: {failure.message}"
