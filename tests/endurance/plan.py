"""What a seed means: the run, what the endpoint is like, and what befalls each session. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

from mmbu_async.simulator import Fault


class Blow(StrEnum):
    """One thing that befalls a running session."""

    # It goes on afterwards.
    STOP = "sigstop"
    """SIGSTOP, then SIGCONT; sometimes another process tries to take the run over meanwhile."""
    CLOCK = "clock jump"
    """The wall clock jumps by up to days, forth or back."""
    RESTART = "server restart"
    """The endpoint goes away, in good order or not, and comes back at the same address."""
    FILES = "no file descriptors"
    """RLIMIT_NOFILE falls below what is open, and rises again."""
    NAMES = "no name resolution"
    """The endpoint's name does not resolve from the start of the session, then it does."""
    # It ends the session.
    FILL = "disk full"
    """The file system has no room left, or (without the rights to mount one) RLIMIT_FSIZE is reached."""
    FSIZE = "file size limit"
    """RLIMIT_FSIZE falls to little more than the store's present size."""
    READ_ONLY = "store read-only"
    """The file system is read-only when the session starts."""
    KILL = "sigkill"
    TERM = "sigterm"
    INT = "sigint"
    HUP = "sighup"
    ABORT = "sigint twice"


PASSING = (Blow.STOP, Blow.CLOCK, Blow.RESTART, Blow.FILES, Blow.NAMES)
ENDING = (Blow.FILL, Blow.FSIZE, Blow.READ_ONLY, Blow.TERM, Blow.INT, Blow.HUP, Blow.ABORT)

CHARACTER = (
    *(Fault.TRUNCATED, Fault.UNTAGGED, Fault.EMPTY_TEXT, Fault.REFUSAL, Fault.CONTENT_FILTER),
    *(Fault.THINK, Fault.REASONING_FIELD, Fault.NULL_CONTENT, Fault.THINKING_SPENT, Fault.NO_USAGE),
)
"""Ways of the model to reply. They belong to rows and not to moments, so that an undisturbed run meets the
same."""
OPINION = Fault.OTHER_VERDICT
"""The judge's own way, likewise."""
FATAL = (
    *(Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.MODEL_NOT_FOUND, Fault.PAYMENT_REQUIRED),
    *(Fault.QUOTA, Fault.CREDIT_BALANCE, Fault.SPEND_LIMIT),
)
REFUSED = (
    *(Fault.BAD_REQUEST, Fault.IMAGE_TOO_LARGE, Fault.CONTENT_POLICY),
    *(Fault.UNSUPPORTED_PARAMETER, Fault.BODY_TOO_LARGE),
)
JUDGE_ONLY = (Fault.NO_VERDICT, *CHARACTER)
"""A judge may reply badly at any moment: its verdict is asked for again."""
KIN: Mapping[str, tuple[str, ...]] = {
    "openai": ("openai", "openai", "responses", "azure"),
    "anthropic": ("anthropic", "gemini"),
}
"""Wire formats that a night has in the place of one of the two that were first."""
EMPTY_IS_A_REPLY = "anthropic"
"""Wire format in which a message without any content is a reply, an empty one."""
TRANSIENT = tuple(
    fault for fault in Fault if fault not in {*CHARACTER, OPINION, *FATAL, *REFUSED, Fault.NO_VERDICT}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A blow, and when it falls."""

    blow: Blow
    after: int
    """Requests that have ended in this session before."""
    seconds: float
    """How long it lasts, or for a jump of the clock: how far."""
    variant: float
    """From 0 to 1, for what else can differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One session of the program, and its troubles."""

    strikes: tuple[Strike, ...]
    faults: tuple[str, ...]
    """Rules of the simulator, beside the character of the model."""
    server_seed: int
    retry_after_s: float
    retry_after_style: str
    stall_s: float
    slow_commit_s: float
    """0: the disk is as fast as it is."""
    readers: bool
    """Others read the live store: one long transaction, one busy loop, and the program's own reports."""
    rejudge: bool
    """Another judge is asked, in place of a resume."""
    limit: int
    """Rows that the run has by now; it may only grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One seed's run."""

    seed: int
    rows: int
    concurrency: int
    judge_concurrency: int
    endpoint: str
    judge_endpoint: str
    stream: bool
    judge_stream: bool
    panel: int
    """Further judges beside the first; the majority of all decides."""
    synchronous: str
    latency: str
    marked: dict[int, Fault]
    """Rows to which the model replies in its own way, or of which the judge has an opinion of its own."""
    episodes: tuple[Episode, ...]
    exports: bool = True
    """Whether they are looked at in the end."""


def draw(seed: int, *, episodes: int | None = None) -> Plan:
    """The plan of a seed: always the same. `episodes` cuts it short, and of such nights each third is
    exported."""
    random = Random(f"endurance {seed}")
    rows = random.randrange(50, 81)
    marked = random.sample(range(rows), rows // 4)
    count = random.randrange(5, 9)
    panel = Random(f"panel {seed}").choice((0, 0, 0, 2))
    rejudged = random.random() < 0.4 and not panel
    grown = random.randrange(0, count)
    # Drawn apart, as the panel: the rest of a seed's night stays what it was.
    formats = Random(f"formats {seed}")
    endpoint = random.choice(("openai", "anthropic"))
    asked = formats.choice(KIN[endpoint])
    plan = Plan(
        seed=seed,
        rows=rows,
        concurrency=random.randrange(3, 9),
        judge_concurrency=random.randrange(2, 7),
        endpoint=asked,
        judge_endpoint=formats.choice(KIN[random.choice(("openai", "anthropic"))]),
        stream=random.random() < 0.5,
        judge_stream=random.random() < 0.5,
        panel=panel,
        synchronous=random.choice(("full", "full", "normal")),
        latency=random.choice(("uniform:0.02,0.2", "lognormal:0.05,0.8", "exponential:0.08")),
        marked={row: random.choice((*CHARACTER, OPINION, OPINION)) for row in sorted(marked)},
        episodes=tuple(
            _episode(
                random,
                seed * 1000 + number,
                rows if number >= grown else rows * 2 // 3,
                count,
                endpoint,
                rejudge=rejudged and number >= count - 2,
            )
            for number in range(count)
        ),
    )
    if "gemini" in (plan.endpoint, plan.judge_endpoint):
        plan = replace(plan, episodes=tuple(map(_without_policy, plan.episodes)))
    if episodes is None:
        return plan
    return replace(plan, episodes=plan.episodes[:episodes], exports=seed % 3 == 2)


def _without_policy(episode: Episode) -> Episode:
    """Google answers a prompt that its filter stops with a reply, which the simulator's books do not hold."""
    faults = (rule.replace(Fault.CONTENT_POLICY.value, Fault.BAD_REQUEST.value) for rule in episode.faults)
    return replace(episode, faults=tuple(faults))


def plain(seed: int) -> Plan:
    """Two kills on a slow disk and no other trouble: what a broken checkpoint cannot hide from."""
    random = Random(f"plain {seed}")
    rows = 24
    moments = (random.randrange(12, 16), random.randrange(10, 15))
    return Plan(
        seed=seed,
        rows=rows,
        concurrency=2,
        judge_concurrency=2,
        endpoint="openai",
        judge_endpoint="anthropic",
        stream=False,
        judge_stream=False,
        panel=0,
        synchronous="full",
        latency="uniform:0.01,0.03",
        marked={},
        exports=False,
        episodes=tuple(
            Episode(
                strikes=(Strike(blow=Blow.KILL, after=moment, seconds=0.0, variant=0.5),),
                faults=(),
                server_seed=seed * 1000 + number,
                retry_after_s=0.1,
                retry_after_style="seconds",
                stall_s=0.0,
                slow_commit_s=0.4,
                readers=False,
                rejudge=False,
                limit=rows,
            )
            for number, moment in enumerate(moments)
        ),
    )


def _episode(random: Random, seed: int, rows: int, count: int, endpoint: str, *, rejudge: bool) -> Episode:
    # Model and judge together have some 1.7 requests a row; a part is left for the last resume.
    moment = random.randrange(1, max(3, 2 * rows // count))
    blows = random.sample(PASSING, random.randrange(0, 3))
    # Most sessions are killed: nothing else tells as much.
    blows.append(Blow.KILL if random.random() < 0.5 else random.choice(ENDING))
    if Blow.READ_ONLY in blows:
        blows = [Blow.READ_ONLY]
    strikes = []
    for blow in blows:
        at_start = blow in (Blow.NAMES, Blow.READ_ONLY)
        strikes.append(
            Strike(
                blow=blow,
                after=0 if at_start else moment,
                seconds=_seconds(random, blow),
                variant=random.random(),
            )
        )
        moment += 0 if at_start else random.randrange(0, 6)
    return Episode(
        strikes=tuple(sorted(strikes, key=lambda strike: strike.after)),
        faults=_faults(random, endpoint),
        server_seed=seed,
        retry_after_s=random.choice((-1.0, 0.0, 0.1, 0.4, 1.0)),
        retry_after_style=random.choice(("seconds", "ms", "both", "date", "reset")),
        stall_s=random.choice((0.5, 2.5)),
        slow_commit_s=random.choice((0.0, 0.0, 0.05, 0.3)),
        readers=random.random() < 0.4,
        rejudge=rejudge,
        limit=rows,
    )


def _seconds(random: Random, blow: Blow) -> float:
    match blow:
        case Blow.CLOCK:
            return random.choice((-1, 1)) * 10 ** random.uniform(0.5, 6.5)
        case Blow.STOP:
            return random.choice((0.2, 0.8, 2.5))
        case _:
            return random.uniform(0.1, 2.0)


def _faults(random: Random, endpoint: str) -> tuple[str, ...]:
    """Rates for either role: on the average a fifth of all requests, at most a half."""
    rules = []
    for role in ("model", "judge"):
        several = [*random.sample(TRANSIENT, random.randrange(0, 7)), *random.sample(REFUSED, 1)]
        if role == "judge":
            several += random.sample(JUDGE_ONLY, random.randrange(0, 3))
        elif endpoint == EMPTY_IS_A_REPLY:
            several = [fault for fault in several if fault is not Fault.EMPTY_CHOICES]
        rules += [f"{fault.value}@{role}={random.choice((0.02, 0.04, 0.08))}" for fault in several]
        if random.random() < 0.2:
            rules.append(f"{random.choice(FATAL).value}@{role}=0.02")
    return tuple(rules)
