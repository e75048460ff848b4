"""`mmbu limit`, `mmbu pause`, `mmbu continue`: speaking to a run that another terminal works on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mmbu_async.cli.arguments import DEFAULT_STORE, RunName, StoreOption
from mmbu_async.cli.ends import screen
from mmbu_async.errors import ConfigError

if TYPE_CHECKING:
    from mmbu_async.pipeline.asking import Asked

NO_LIMIT = "none"


def _flag(name: str, what: str) -> Any:
    return typer.Option(name, metavar="N", help=what, show_default=False)


Count = Annotated[int | None, _flag("--concurrency", "Most calls under way at once.")]
Rpm = Annotated[str | None, _flag("--rpm", f"Requests a minute; `{NO_LIMIT}`: any number.")]
Tpm = Annotated[str | None, _flag("--tpm", f"Tokens a minute, input and output; `{NO_LIMIT}`: any number.")]
JudgeCount = Annotated[int | None, _flag("--judge-concurrency", "The same for the judge.")]
JudgeRpm = Annotated[str | None, _flag("--judge-rpm", "The same for the judge.")]
JudgeTpm = Annotated[str | None, _flag("--judge-tpm", "The same for the judge.")]
Of = Annotated[
    str | None,
    typer.Option(
        "--of",
        metavar="JUDGE",
        help="Let --concurrency, --rpm and --tpm be those of this judge of the panel, not of the model.",
        show_default=False,
    ),
]


def limit(
    name: RunName,
    concurrency: Count = None,
    rpm: Rpm = None,
    tpm: Tpm = None,
    judge_concurrency: JudgeCount = None,
    judge_rpm: JudgeRpm = None,
    judge_tpm: JudgeTpm = None,
    of: Of = None,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Change how fast a run may call, now if it is at work, and for later sessions; without flags, say it.

    Limits change no answer, so they are kept with the run: a resume goes on with them.
    """
    from mmbu_async import api

    own = dict(_given(concurrency, rpm, tpm, "--"))
    if of is not None and not own:
        raise ConfigError(f"--of {of}: give what is to change, --concurrency, --rpm or --tpm.")
    limits = {of or "": own, "judge": dict(_given(judge_concurrency, judge_rpm, judge_tpm, "--judge-"))}
    asked = api.limit(name, store=store, limits={side: values for side, values in limits.items() if values})
    for line in asked.limits:
        _say(line)
    if any(limits.values()):
        _say(_became(asked, "kept for the next `mmbu resume`: no process is at work on the run", "in force"))


def pause(name: RunName, store: StoreOption = DEFAULT_STORE) -> None:
    """Let a run that is at work start no further call until `mmbu continue`; calls under way finish."""
    from mmbu_async import api

    asked = api.pause(name, store=store)
    _say(_became(asked, "", "paused: calls under way finish and are kept"))
    _say(f"`mmbu continue {shlex.quote(name)}` goes on; the process stays and holds the run meanwhile.")


def continue_(name: RunName, store: StoreOption = DEFAULT_STORE) -> None:
    """Let a paused run go on."""
    from mmbu_async import api

    _say(_became(api.continue_run(name, store=store), "", "going on"))


def _given(
    concurrency: int | None, rpm: str | None, tpm: str | None, flags: str
) -> Iterator[tuple[str, float | None]]:
    if concurrency is not None:
        yield "concurrency", concurrency
    for setting, text in (("rpm", rpm), ("tpm", tpm)):
        if text is not None:
            yield setting, _number(text, f"{flags}{setting}")


def _number(text: str, flag: str) -> float | None:
    if text.lower() == NO_LIMIT:
        return None
    try:
        return float(text.replace("_", ""))
    except ValueError:
        raise ConfigError(f"{flag} {text}: is neither a number nor `{NO_LIMIT}`.") from None


def _became(asked: Asked, nobody: str, done: str) -> str:
    if asked.process is None:
        return nobody
    who = f"process {asked.process.owner.pid} on {asked.process.owner.host}"
    if asked.heeded:
        return f"{done} ({who})"
    return f"asked {who}, which has not answered yet; `mmbu status` shows where the run stands"


def _say(text: str) -> None:
    from mmbu_async.report import plain

    screen().print(plain.line(text), markup=False, highlight=False, soft_wrap=True)
