"""What a comparison of runs says, as plain values: every renderer shows these, none computes.

The first run is the baseline, and each later one is compared with it. A row that the later run has right and
the baseline wrong is a win; a difference is the later run's figure minus the baseline's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mmbu_async.report.groups import Group
from mmbu_async.stats import LEVEL, RESAMPLES, Difference
from mmbu_async.stats.power import ALPHA, POWER

CONVENTION = (
    "Compared are the rows that have a score in every run. A win is a row that the later run has right and "
    "the baseline wrong, a loss the reverse, a tie one that both have right or both wrong. A difference is "
    "the later run's figure minus the baseline's, and its interval that of the paired bootstrap: rows are "
    "drawn with their outcomes in both runs. p is that of McNemar's exact two-sided test on wins and losses; "
    "ties do not count."
)
CORRECTION = (
    "Holm and BH (Benjamini-Hochberg) correct p for the number of strata of one attribute, small ones and "
    "rows without a value included; the task families are such an attribute. Nothing is corrected across "
    "attributes. Below alpha by Holm: no false finding among them, with probability 1 - alpha. By BH: at "
    "most a share alpha of them is expected to be false."
)
"""Said wherever strata are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One of the runs, over the rows that are compared."""

    name: str
    model: str
    judge: str | None
    """Under which the store keeps the judge whose verdicts make the scores."""
    official: bool
    """Whether its settings are those of official scores."""
    rows: int
    """Rows that the run is about."""
    scored: int
    """Those with a score."""
    elsewhere: int
    """Its rows that not every other run has selected: left out."""
    open: int
    """Rows of all runs that have no score in this one: left out."""
    overall: Group
    """Its figures over the compared rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumComparison:
    """The rows with one value of an attribute."""

    attribute: str
    value: str | None
    """None: the rows that have no value for the attribute."""
    n: int
    wins: int
    losses: int
    ties_right: int
    ties_wrong: int
    accuracy: Difference
    f1: Difference
    p: float
    p_holm: float
    """Corrected for the strata of this attribute."""
    p_bh: float
    """The same by Benjamini-Hochberg."""
    small: bool
    """Too few rows to read anything into."""

    @property
    def ties(self) -> int:
        return self.ties_right + self.ties_wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedAttribute:
    """A metadata column or the task's topics, the largest stratum first, rows without a value last."""

    name: str
    strata: tuple[StratumComparison, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """A row that one of the two runs has right and the other wrong."""

    row_id: str
    family: str
    direction: Literal["gained", "lost"]
    """Gained: a win of the later run."""
    first_answer: str
    second_answer: str
    truth: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PairComparison:
    """A later run beside the baseline."""

    first: str
    """The baseline's name."""
    second: str
    n: int
    wins: int
    losses: int
    ties_right: int
    ties_wrong: int
    accuracy: Difference
    f1: Difference
    clusters: int | None
    """How many clusters the intervals above and those of the families were resampled by; None: by rows."""
    p: float
    p_holm: float
    """Corrected for the number of later runs."""
    disagreement: float | None
    """Share of the rows that are no ties."""
    detectable: float | None
    """The smallest difference of accuracy that so many rows show with power POWER, at the observed share of
    rows on which the two part; None where they show none."""
    differing: tuple[str, ...]
    """Settings in which the two are not alike, beside the model: the difference is theirs too."""
    families: tuple[StratumComparison, ...]
    attributes: tuple[ComparedAttribute, ...]
    flips: tuple[Flip, ...]
    """The first in dataset order, of wins + losses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two or more runs over the same content of one benchmark."""

    benchmark: str
    fingerprint: str
    """SHA-256 over the content of the dataset's rows."""
    first_line: str
    """What is compared."""
    common_rows: int
    """Rows with a score in every run: what all figures are taken over."""
    runs: tuple[ComparedRun, ...]
    """The baseline first."""
    pairs: tuple[PairComparison, ...]
    """Each later run against the baseline."""
    left_out: tuple[str, ...]
    """Which rows are not compared, and why; a sentence each."""
    notes: tuple[str, ...]
    """What else a reader must know before the numbers."""
    convention: str = CONVENTION
    correction: str = CORRECTION
    resamples: int = RESAMPLES
    level: float = LEVEL
    power: float = POWER
    alpha: float = ALPHA
