"""The nouns. Readable in two minutes; everything else in the package is about moving these along.

A `Sample` is one row of a benchmark. A `Benchmark` turns it into a `Prompt`; an endpoint turns the prompt
into a `Completion`, or into a `Failure`, which is a call that gave no reply: never an answer, never a wrong
score. The benchmark reads the committed `Answer` out of the completion; a judge gives a `Verdict` on it;
answer and verdict give the `Score`. A `Stratum` is a named subset of rows that a report speaks about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Json = Any
"""Whatever JSON can say: None, bool, int, float, str, list, dict."""

Box = tuple[float, float, float, float]
"""(x, y, width, height) in pixels of the original image; x, y is the top-left corner."""


# ---------------------------------------------------------------- rows and prompts


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRef:
    """Where the bytes of one image lie, in words that the source that made it understands."""

    locator: str
    """For a folder the path below it; for an archive the member; for a table the row number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRow:
    """One row as the source has it."""

    position: int
    """Place in the source, from 0."""
    fields: Mapping[str, Json]
    """Every column but the image bytes; `config` too, where the source has several configurations."""
    images: tuple[ImageRef, ...]
    """In the order of the columns; empty cells are left out where there are several image columns."""
    image_columns: tuple[str, ...] = ()
    """The column of each image."""
    where: str
    """For error messages, e.g. `metadata.jsonl, line 12`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One row of a benchmark, validated, as the benchmark's own `sample()` made it."""

    id: str
    position: int
    """Place in the dataset, from 0. For order only: rows are matched by `id` everywhere."""
    question: str
    answer: str
    """The truth, as the row writes it."""
    options: tuple[str, ...] = ()
    """Option texts without their letter prefix; empty where the row has none."""
    route: str
    """Which of the benchmark's ways to prompt and to score applies."""
    images: tuple[ImageRef, ...] = ()
    strata: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Attribute name -> values this row has (a `task` can name several topics)."""
    fields: Mapping[str, Json] = field(default_factory=dict)
    """Every column of the row as it was read, unknown ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSpec:
    """Where a benchmark's rows and images lie, on the hub and in a local copy."""

    hub: str
    """Hub id, `owner/name`."""
    configs: tuple[str, ...] = ()
    """The hub's configurations, read one after the other; empty: the only one."""
    split: str = "train"
    tables: tuple[str, ...] = ("metadata.jsonl", "metadata.tsv")
    """Glob patterns of the table below a local folder; all files of the first that matches are read, in
    the order of their names."""
    image_columns: tuple[str, ...] = ("file_name",)
    """Columns that hold an image: a struct of bytes and path, bytes, base64 text, or a file's name."""
    image_folders: tuple[str, ...] = ("", "images")
    """Folders, in a local copy or in an archive, below which file names are looked for."""
    archives: tuple[str, ...] = ()
    """Zip files beside the table that hold the images; they are read in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSlot:
    """A place in a prompt where the sample's image number `index` (from 0) stands."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What is said to a model: an optional system message and one user message of texts and images."""

    parts: tuple[str | ImageSlot, ...]
    system: str | None = None

    @property
    def text(self) -> str:
        """The texts of the user message, images left out."""
        return "".join(part for part in self.parts if isinstance(part, str))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedImage:
    """Image bytes that the endpoint accepts."""

    data: bytes
    media_type: str
    """`image/png`, `image/jpeg`, `image/gif` or `image/webp`."""
    width: int
    height: int
    """Pixels of the image as sent ('as shown')."""
    scale: float = 1.0
    """Sent size / original size, at most 1. Predicted coordinates are divided by it."""
    original_sha256: str = ""
    """SHA-256 of the bytes as the source gave them, hexadecimal."""
    converted: str = ""
    """Why the bytes are not the original ones ('' when they are), e.g. `tiff`, `16-bit`, `scaled`."""


# ---------------------------------------------------------------- calls


class Finish(StrEnum):
    """Why a reply ended, in one vocabulary for all wire formats."""

    STOP = "stop"
    LENGTH = "length"
    """Cut by the token limit."""
    REFUSAL = "refusal"
    """Refused by the model or stopped by a content filter."""
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens as the endpoint reported them. Input includes cached input; output includes reasoning."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reported: bool = True
    """False when the endpoint reported nothing and the numbers are zeros."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Clock readings of one attempt."""

    started_at: float
    """Unix seconds when the request was handed to the transport."""
    total_s: float
    """Seconds from there to the last byte of the reply."""
    first_token_s: float | None = None
    """Seconds to the first content token; None without streaming."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """A reply that a model gave, raw. Paid for, stored as it came, never changed."""

    text: str
    finish: Finish
    finish_raw: str = ""
    """The endpoint's own word for the end."""
    reasoning: str = ""
    """What came in a separate reasoning field; not part of the reply."""
    usage: Usage = Usage()
    model: str = ""
    """The model name that the endpoint reported."""
    request_id: str = ""


class FailureKind(StrEnum):
    """Why a call gave no reply. The order is that of the failure table."""

    TIMEOUT = "timeout"
    CONNECTION = "connection"
    RATE_LIMIT = "rate_limit"
    SERVER_ERROR = "server_error"
    MALFORMED = "malformed"
    """The body is no JSON, an error object under status 200, or has no reply in it."""
    AUTH = "auth"
    MODEL_NOT_FOUND = "model_not_found"
    QUOTA = "quota"
    """Out of credit or quota: waiting does not help."""
    BAD_REQUEST = "bad_request"
    """The endpoint refuses this row (too large, content policy, parameter)."""
    IMAGE = "image"
    """The image could not be read or made acceptable; nothing was sent."""
    DUPLICATE = "duplicate"
    """A reply for a row that had one, from another machine at the same run: paid for, kept, not used."""


FATAL_KINDS = frozenset({FailureKind.AUTH, FailureKind.MODEL_NOT_FOUND, FailureKind.QUOTA})
"""Kinds that no other row will escape: the run stops at once."""

TRANSIENT_KINDS = frozenset(
    {
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.RATE_LIMIT,
        FailureKind.SERVER_ERROR,
        FailureKind.MALFORMED,
    }
)
"""Kinds worth another attempt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A call that gave no reply. Never an answer, never a wrong score."""

    kind: FailureKind
    message: str
    """The endpoint's words where it had any, else ours; one line, secrets masked."""
    status: int | None = None
    """HTTP status; None when no response came."""
    request_id: str = ""
    retry_after_s: float | None = None
    """How long the endpoint asked to wait, in seconds from the moment the response came."""
    usage: Usage | None = None
    """Tokens that the endpoint says it charged all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryDecision:
    """What to do after a failed attempt; a pure value."""

    again: bool
    wait_s: float = 0.0
    rate_limited: bool = False
    counts: bool = True
    """Whether the attempt uses up one of the allowed attempts; waiting for Retry-After does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One HTTP exchange, good or bad. Every one is billed and stored."""

    number: int
    """From 1, per row and stage and session."""
    timing: Timing
    outcome: Completion | Failure
    cost_usd: float | None = None
    """None when the price is unknown; never 0 for want of a price."""


# ---------------------------------------------------------------- answers, verdicts, scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the model committed to, and how it was found."""

    text: str
    how: str
    """The rung of the ladder that found it, e.g. `tag` or `untagged`."""
    outside: bool = False
    """What was committed to is not on offer, so that `text` is empty: a wrong answer, not a missing one."""
    second: str | None = None
    """What a second reading makes of the reply, for a benchmark that has one. Like `outside` it shows in the
    score, and is not stored by itself."""

    @property
    def untagged(self) -> bool:
        return self.how == "untagged"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeItem:
    """What a judge is asked about one row."""

    question: str
    labels: tuple[str, ...]
    true_answer: str
    model_answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judge's word on one row."""

    correct: bool | None
    """None: the judge gave no usable verdict; the row is unjudged, which is not wrong."""
    reply: str = ""
    judge: str = ""


class Status(StrEnum):
    """Where a row stands. Only SCORED rows have a right or wrong."""

    SCORED = "scored"
    UNGRADED = "ungraded"
    """A reply to a row whose truth is not public: nothing to compare it with."""
    UNJUDGED = "unjudged"
    FAILED = "failed"
    PENDING = "pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """What a row is worth. `correct` is None unless the status is SCORED."""

    status: Status
    correct: bool | None = None
    tp: int = 0
    fp: int = 0
    fn: int = 0
    """Counts for the micro-averaged F1: right TP 1; answered wrong FP 1 and FN 1; unanswered FN 1."""
    detail: Mapping[str, Json] = field(default_factory=dict)
    """What the scorer wants a reader to see: IoU, boxes, labels, reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreItem:
    """What a row is scored from."""

    sample: Sample
    answer: Answer
    verdict: Verdict | None = None
    image_scale: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """A named subset of rows."""

    attribute: str
    value: str


class Benchmark(Protocol):
    """One file in tasks/: how a row becomes a prompt and a reply becomes a score. Pure, no I/O."""

    name: str
    title: str
    data: DataSpec
    rows: str
    """How many rows were published, for people; what was loaded is stated by each report."""
    routes: tuple[str, ...]
    """In which ways rows are asked and scored, for people."""
    metric: str
    """What the headline counts, in a few words."""
    judge: str
    """Name of the judge's prompt in judging/; '' where every row is scored by rule."""
    licence: str
    citation: str

    def samples(self, raw: RawRow) -> Sequence[Sample]:
        """Validate one raw row: no sample where the row is none of this benchmark's, several where it is
        asked in several forms. Their positions are those of the raw row. Raises RowError.
        """

    def prompt(self, sample: Sample) -> Prompt:
        """What the model under test is sent. Never holds options or answer where the protocol forbids it."""

    def prompt_hashes(self) -> Mapping[str, str]:
        """SHA-256 of each prompt text used, by name: part of a run's identity."""

    def read(self, sample: Sample, completion: Completion) -> Answer:
        """The committed answer."""

    def judge_item(self, sample: Sample, answer: Answer) -> JudgeItem | None:
        """What a judge must decide; None when no judge is needed (scored by rule, or empty answer)."""

    def score(self, rows: Sequence[ScoreItem]) -> list[Score]:
        """One score a row, in order; some thousand rows at a time keep the IoU kernel's arrays in cache.

        Status UNJUDGED where a judge is needed and gave nothing.
        """

    def family(self, sample: Sample) -> str:
        """The task family that headline tables group by."""

    def shown_route(self, sample: Sample) -> str:
        """The route's name for people."""

    def blemishes(self, sample: Sample) -> tuple[str, ...]:
        """What is odd about a row that is used all the same, for validation to list."""
