"""What a report says, as plain values: every renderer shows these, none computes.

Frozen dataclasses of numbers, strings, tuples and mappings, so that JSON is their direct image. A figure that
is not known is None, never 0 and never NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mmbu_async.model import Json
from mmbu_async.report.distributions import Distributions
from mmbu_async.report.groups import Attribute, Group
from mmbu_async.report.heatmap import Heatmap
from mmbu_async.report.panel import Panel
from mmbu_async.report.plan import Resolution
from mmbu_async.stats import Estimate, Interval
from mmbu_async.store.records import CallTotals

CONVENTION = (
    "Accuracy: right rows / all selected rows. Micro-F1: a right row counts one TP, an answered wrong row "
    "one FP and one FN, an unanswered row one FN only; rows with several labels count each label. In bounds, "
    "an open row counts as one label."
)
"""The convention that every report states."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCounts:
    """Where the rows stand. `selected` = scored + ungraded + failed + unjudged + pending."""

    dataset: int
    """Rows of the whole dataset."""
    selected: int
    """Rows this run is about: the denominator of every figure."""
    scored: int
    right: int
    ungraded: int
    """A reply to a row whose answer is not public; in no figure."""
    guessed: int
    """Scored rows whose answer the benchmark's rules had to guess."""
    guessed_right: int
    failed: int
    """Every attempt of the last session failed: no reply."""
    unjudged: int
    """A reply without a usable verdict."""
    pending: int
    """Not asked yet, or in flight when the run stopped."""
    untagged: int
    """Replies without a complete answer tag; the raw reply was scored."""
    truncated: int
    """Replies cut by the token limit."""
    refused: int
    empty: int
    """Replies that commit to nothing."""
    scaled: int
    """Rows whose image was made smaller to fit the endpoint's limits."""

    @property
    def open(self) -> int:
        """Rows that have no score."""
        return self.failed + self.unjudged + self.pending


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """Object detection beside accuracy, which a model can raise by offering many boxes."""

    rows: int
    """Scored rows of the detection scorer: what the figures below are taken over."""
    mean_iou: float | None
    """Mean over rows of the largest IoU between an offered and a true box."""
    boxes: int
    """Boxes offered in all these rows."""
    truths: int
    """True boxes in all these rows."""
    most_boxes: int
    """The most boxes offered in one row."""
    no_boxes: int
    """Rows whose answer held no usable box."""
    matched_f1: Estimate
    """F1 over boxes at IoU 0.5, each true box matched at most once: many guesses lower it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circular:
    """Rows that were asked once for every rotation of their options."""

    rows: int
    """Rows with all their rotations scored."""
    right: int
    """Those that were right in every rotation."""
    partial: int
    """Rows without a score for some rotation, which was not selected or is open: in no figure here."""
    accuracy: Estimate
    """right / rows; without a value while the run has open rows."""
    wilson: Interval | None
    """Of this accuracy; None also where rows share clusters, since it takes them as independent."""
    rotations: int
    rotations_right: int
    mean: Estimate
    """rotations_right / rotations: what these rows score without circular evaluation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialLine:
    """A line of MMMU's own table."""

    name: str
    level: int
    """0: all rows; 1: a discipline; 2: a subject of the discipline above it."""
    n: int
    right: int
    accuracy: float | None
    """None while one of its rows is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Micro-F1 and accuracy in MMBU's closed format beside the open one, over the same rows.

    Accuracy stands beside F1 because the formats count wrong answers differently: a closed one that names no
    option is an unanswered row, with one FN, while a wrong open one has an FP too. So F1 can rise from open
    to closed where not one more row is right.
    """

    name: str
    n: int
    """Rows that both runs have."""
    open_f1: float | None
    closed_f1: float | None
    difference: Estimate
    """Of F1, closed - open, with a paired interval."""
    open_accuracy: float | None
    closed_accuracy: float | None
    accuracy_difference: Estimate
    """Of the accuracy, from the same resamples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two runs of one model, in MMBU's open and closed format."""

    open_run: str
    closed_run: str
    differing: tuple[str, ...]
    """Settings in which the two runs are not alike."""
    overall: Delta
    families: tuple[Delta, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure that a scorer gives beside right and wrong."""

    name: str
    rows: int
    """Scored rows that have it."""
    mean: float
    interval: Interval | None
    """Normal, of the mean; None for a single row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Rows that the last re-score changed for one cause."""

    cause: str
    """`reading`: the reply was read, or the answer scored, by other rules; `verdict`: the answer is the same,
    and a judge's word on it another."""
    rows: int
    right_to_wrong: int
    """Right before the re-score, wrong today."""
    wrong_to_right: int
    now_open: int
    """Had a score before, and have no verdict on what is read today; a rejudge asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescoring:
    """The last re-score after which some rows came out otherwise."""

    at: float
    """Unix seconds."""
    package_version: str
    """By which the rows were scored anew."""
    rows: int
    """Whose answer or score changed."""
    causes: tuple[ChangedRows, ...]
    row_ids: tuple[str, ...]
    """The first of them, in dataset order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time spent on the run."""

    sessions: int
    wall_s: float
    """Seconds from start to end, summed over sessions."""
    asking_s: float
    """Of `wall_s`, those of sessions that asked the model: without rejudges."""
    rows_per_s: float | None
    """Rows with a reply / `asking_s`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Verdicts of one judge that did not have to be bought."""

    judge: str
    verdicts: int
    cost_usd: float | None
    """At the mean cost of those that were bought of this judge; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Party:
    """A model, how it was reached and with which settings."""

    name: str
    """Under which the store keeps it: the judge's name; the model's for the model under test."""
    model: str
    endpoint: str
    host: str
    settings: Mapping[str, Json]
    """What changes answers: sampling, token limit, parameters passed through."""
    prompts: Mapping[str, str]
    """Prompt name -> SHA-256 of its text."""
    reported_models: Mapping[str, int]
    """Model names that the endpoint itself reported -> replies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What exactly was run."""

    benchmark: str
    source: str
    fingerprint: str
    """SHA-256 over the content of the dataset's rows."""
    created_at: float
    """Unix seconds."""
    packages: tuple[str, ...]
    """Versions of this package that worked on the run, in order."""
    scored_by: str | None
    """The version that last made the scores."""
    selection: Mapping[str, Json]
    """`limit`, `task` and `where`, where given."""
    model: Party
    judge: Party | None
    """Whose verdicts make the scores; of a majority, its name and prompt alone."""
    panel: tuple[Party, ...]
    """All judges that are asked, the judge first; empty unless there are several."""
    warnings: tuple[str, ...]
    """What makes the verdicts less trustworthy: a judge of the model's own maker."""
    official: bool
    """Whether the settings are those of official scores."""
    unofficial: tuple[str, ...]
    """Why not, one clause each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportData:
    """Everything a report says about one run, computed from the store alone."""

    run: str
    complete: bool
    """No row failed, is unjudged or pending."""
    first_line: str
    """Complete or not, and how much is missing."""
    notes: tuple[str, ...]
    """What a reader must know before the numbers: a smaller selection, stale scores."""
    rows: RowCounts
    overall: Group
    families: tuple[Group, ...]
    attributes: tuple[Attribute, ...]
    heatmaps: tuple[Heatmap, ...]
    """Accuracy over two properties at once; empty where there are not two that are worth it."""
    fates: tuple[Group, ...]
    """Rows by what became of them: how the answer was found, or what it was lost to. Each row is in one."""
    distributions: Distributions
    detection: Detection | None
    """None where no row is scored by boxes."""
    circular: Circular | None
    """None where options were not rotated."""
    official: tuple[OfficialLine, ...]
    """Empty where rows have no discipline and subject."""
    resolution: Resolution | None
    """Which difference to another run so many rows show; None where no row has a score."""
    measures: tuple[Measure, ...]
    """Overlap of masks, shared words, a second reading; empty where rows are right or wrong and no more."""
    contrast: Contrast | None
    """None unless this run and one in MMBU's other format are complete and share rows."""
    panel: Panel | None
    """None unless several judges have given verdicts."""
    rescoring: Rescoring | None
    """None where no re-score has changed anything."""
    failure_kinds: Mapping[str, int]
    """Rows that failed, by the kind of their last attempt."""
    model_spend: CallTotals
    judge_spend: CallTotals
    failed_calls: Mapping[str, int]
    """Calls of the model under test that gave no reply, by kind; retried ones included."""
    shared_verdicts: int
    """Verdicts that were taken from the reply to an identical judge prompt, this run's or another's."""
    saved: tuple[Saved, ...]
    """Them by judge, with the money that they would have cost."""
    clock: Clock
    ran: Provenance
    convention: str = CONVENTION
    resamples: int = 0
    level: float = 0.0
