"""What goes over the wire, in both directions. The description of the API is made of these models alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from mmbu_async.model import Json
from mmbu_async.service.settings_schema import Described

MOST_TEXT = 500
"""Characters of a run's name, and of what else is a name."""
MOST_COMPARED = 12
"""Runs in one comparison."""


class Asked(BaseModel):
    """What a client sends: nothing that we do not know."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False, strict=True)


class Told(BaseModel):
    """What a client gets."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True, from_attributes=True)


def _whole(value: object) -> object:
    """JSON has one kind of number: 4.0 is the whole number 4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: object) -> object:
    """Half a character, which a file name in a message can hold, is in no JSON."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_text)]
Whole = Annotated[int, BeforeValidator(_whole)]
State = Literal["queued", "running", "paused", "done", "incomplete", "cancelled", "failed"]
Settings = Annotated[dict[str, Any], Described(whole=True)]
"""Names and values as in a settings file."""
Changes = Annotated[dict[str, Any], Described(whole=False)]
"""Some of them."""


class Nothing(Asked):
    """An empty object, or no body at all."""


class SubmitAsked(Asked):
    """A run to queue."""

    settings: Settings
    """As in a settings file for `mmbu run --config`, but that `data` and `endpoint` name what this service
    was started with; `model` is needed. Settings that name files of the server are refused."""
    priority: Whole = Field(default=0, ge=-1000, le=1000)
    """Higher goes first, and gets a larger share of a limit that runs have in common."""
    new_run: bool = False
    """Start another run under a fresh name where there is one of this name, instead of going on with it."""


class EstimateAsked(Asked):
    """A run to think about."""

    settings: Settings
    """As for a run."""


class ResumeAsked(Asked):
    """How to go on."""

    changes: Changes = Field(default_factory=dict)
    """Settings that do not change answers, as for `mmbu resume`; only for a run that has ended."""
    priority: Whole = Field(default=0, ge=-1000, le=1000)
    """Higher goes first; of a run that has ended and is queued again."""


class RejudgeAsked(Asked):
    """Verdicts to buy."""

    changes: Changes = Field(default_factory=dict)
    """The judge's settings, as for `mmbu rejudge`; empty: the run's own judge."""
    failed: bool = False
    """Only rows which the run's judge left unjudged."""
    priority: Whole = Field(default=0, ge=-1000, le=1000)
    """Higher goes first."""


class SideLimits(Asked):
    """How fast one side may call. What is left out stays as it is: defaults here mean nothing."""

    concurrency: Whole = Field(default_factory=int, ge=1, le=10_000)
    """Most calls under way at once."""
    rpm: float | None = Field(default=None, gt=0, le=1e9)
    """Requests a minute; null: any number."""
    tpm: float | None = Field(default=None, gt=0, le=1e12)
    """Tokens a minute; null: any number."""


class LimitAsked(Asked):
    """Other limits for a run, at once and for later sessions; none: only say what holds."""

    model: SideLimits | None = None
    """Of the model under test."""
    judges: dict[str, SideLimits] = Field(default_factory=dict)
    """By a judge's name; `judge` is the run's first."""


class PriorityAsked(Asked):
    """Another place in the queue."""

    priority: Whole = Field(ge=-1000, le=1000)
    """Higher goes first; 0 is where a run begins."""


class ListAsked(Asked):
    """Which runs."""

    state: list[State] = Field(default_factory=list, max_length=10)
    """Only runs whose newest job is in one of these states; all where none is given."""


class ReportAsked(Asked):
    """In which form."""

    format: Literal["json", "html", "md"] = "json"
    """`html` is a page that needs nothing beside it."""


class ExportAsked(Asked):
    """In which form."""

    format: Literal["jsonl", "csv", "parquet", "submission", "leaderboard"] = "jsonl"
    """The first three hold every row; see the page on exports for the others."""


class CompareAsked(Asked):
    """Which runs, and in which form."""

    run: list[str] = Field(min_length=2, max_length=MOST_COMPARED)
    """Names of runs, given as `run=A&run=B`; the first is the baseline."""
    format: Literal["json", "html", "md"] = "json"
    """`html` is a page that needs nothing beside it."""


class JobTold(Told):
    """A piece of work on a run: the newest one, where there were several."""

    id: int
    """Rises with every job."""
    run: str
    """Name of the run."""
    kind: Literal["run", "resume", "rejudge"]
    """What is done."""
    state: State
    priority: int
    """Higher goes first."""
    created_at: float
    """Seconds since 1970, as all moments."""
    started_at: float | None
    ended_at: float | None
    message: Text
    """Why it ended or what it waits for; empty where there is nothing to say."""
    exit_code: int | None
    """As of the command line; null while it is not over."""
    settings: dict[str, Json]
    """As submitted; of a resume or a rejudge, the changes."""
    failed_only: bool
    """Of a rejudge: only rows that have no usable verdict."""


class ProgressTold(Told):
    """Where a run stood at one moment."""

    at: float
    done: int
    """Rows with everything that they need."""
    total: int
    """Rows of the run."""
    judged: int
    failed: int
    rows_per_s: float
    eta_s: float | None
    """Seconds until the end; null: not known."""
    cost_usd: float
    """Spent so far in this and earlier sessions, as far as prices are known."""
    cost_unknown: int
    """Calls without a known price."""
    in_flight: int
    """Calls under way."""
    waiting: Text
    """What holds it up, in words; empty where nothing does."""
    errors: dict[Text, int]
    """Failed attempts by kind, of the present session as all that counts calls."""
    latency_p50_s: float | None
    latency_p95_s: float | None
    """Of the latest calls that were answered."""
    calls: int
    """Attempts of the present session."""
    queue: int
    """Rows with a reply that wait for a verdict."""


class RunTold(Told):
    """A run of this service."""

    job: JobTold
    progress: ProgressTold | None
    """Null before it has begun."""


class RunsTold(Told):
    """Runs of this service, the newest first."""

    runs: list[RunTold]


class LimitsTold(Told):
    """The limits that hold now."""

    limits: list[Text]
    """A sentence for the model and for each judge."""


class HistoryTold(Told):
    """A run over time, oldest first. Of a long run what lies back is thinned out."""

    points: list[ProgressTold]


class LogsTold(Told):
    """The last lines of a run's log, oldest first."""

    lines: list[Text]


class StoredRun(Told):
    """A run that the store holds, whoever made it."""

    run: str
    model: str
    benchmark: str
    created_at: float
    rows: int
    """Selected."""
    scored: int
    failed: int


class StoredTold(Told):
    """All runs of the store, oldest first."""

    runs: list[StoredRun]


class SideTold(Told):
    """What the model, or one judge, is expected to take."""

    name: str
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Null: no price is known."""
    price_source: str
    replies: int
    """Replies in the store from which the tokens were learnt; 0: by rules alone."""
    seconds: float
    """At the configured limits."""


class EstimateTold(Told):
    """What a run would take. Nothing was called, and nothing written."""

    rows: int
    """Of the selection."""
    dataset_rows: int
    families: dict[str, int]
    """Rows by family."""
    problem_count: int
    """Rows or images that cannot be used; a run would count them as failed."""
    problems: list[Text]
    """The first of them."""
    model: SideTold | None
    judges: list[SideTold]
    cost_usd: float | None
    """Of all sides; null where a price is not known."""
    seconds: float
    """Of the slowest side."""


class EndpointTold(Told):
    """An endpoint that runs may name."""

    name: str
    endpoint: str
    """Its wire format."""
    models: list[str]
    """Models that it is known to have; empty: not said."""


class ChoicesTold(Told):
    """What settings may name here."""

    benchmarks: list[str]
    data: list[str]
    """Data sets that the service was started with."""
    endpoints: list[EndpointTold]
