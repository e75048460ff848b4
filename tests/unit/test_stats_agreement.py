from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from mmbu_async.stats import Kappa, cohen_kappa, fleiss_kappa, krippendorff_alpha

RIGHT_OR_WRONG = st.booleans()
VERDICTS = st.one_of(st.none(), st.booleans())

# Fleiss (1971), Measuring Nominal Scale Agreement among Many Raters, Psychological Bulletin 76:378-382: 30
# patients, each with the diagnoses of six psychiatrists. 1 depression, 2 personality disorder,
# 3 schizophrenia, 4 neurosis, 5 other.
DIAGNOSES = (
    *("444444", "222555", "233335", "555555", "222444", "113333", "333355", "113334", "114444", "555555"),
    *("144444", "124444", "222333", "144444", "224445", "333335", "111455", "111112", "224444", "133555"),
    *("555555", "244444", "224555", "114444", "144445", "222224", "111155", "224444", "133333", "555555"),
)

# The table of Wikipedia's article on Fleiss' kappa: how many of 14 raters put each subject into which class.
FOURTEEN_RATERS = (
    *((0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1)),
    *((7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7)),
)

# SAS/STAT User's Guide, The FREQ Procedure, Getting Started: the skin condition of 88 patients in the eyes of
# two dermatologists.
SKIN = {
    ("terrible", "terrible"): 10,
    ("terrible", "poor"): 4,
    ("terrible", "marginal"): 1,
    ("poor", "terrible"): 5,
    ("poor", "poor"): 10,
    ("poor", "marginal"): 12,
    ("poor", "clear"): 2,
    ("marginal", "terrible"): 2,
    ("marginal", "poor"): 4,
    ("marginal", "marginal"): 12,
    ("marginal", "clear"): 5,
    ("clear", "poor"): 2,
    ("clear", "marginal"): 6,
    ("clear", "clear"): 13,
}

# Krippendorff (2011), Computing Krippendorff's Alpha-Reliability: examples A, B and C. A dot is no label.
TWO_OBSERVERS_BINARY = ("0100000010", "1110010000")
TWO_OBSERVERS_NOMINAL = ("aabbdcccedda", "babbbccceddd")
FOUR_OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def by_row(raters: tuple[str, ...]) -> Counter[tuple[str | None, ...]]:
    return Counter(tuple(None if one == "." else one for one in row) for row in zip(*raters, strict=True))


def rows_of(counts: Mapping[tuple[bool, bool], int]) -> list[tuple[bool, bool]]:
    return [labels for labels, count in counts.items() for _ in range(count)]


def as_fleiss(counts: Mapping[tuple[bool, bool], int]) -> Kappa:
    return fleiss_kappa({tuple(labels): count for labels, count in counts.items()})


Measure = Callable[[Mapping[tuple[bool, bool], int]], Kappa]


def test_cohens_kappa_of_two_dermatologists() -> None:
    # SAS prints 0.3449 with limits 0.2030 and 0.4868.
    found = cohen_kappa(SKIN)
    assert found.n == 88
    assert found.percent == pytest.approx(100 * 45 / 88)
    assert found.kappa == pytest.approx(0.3449, abs=5e-5)
    assert found.low == pytest.approx(0.2030, abs=5e-5)
    assert found.high == pytest.approx(0.4868, abs=5e-5)


def test_cohens_kappa_of_fifty_proposals() -> None:
    # Wikipedia, Cohen's kappa: 70 % agreement, 50 % by chance.
    counts = {(True, True): 20, (True, False): 5, (False, True): 10, (False, False): 15}
    found = cohen_kappa(counts)
    assert (found.n, found.percent) == (50, 70.0)
    assert found.kappa == pytest.approx(0.4)


@given(rows=st.lists(st.tuples(RIGHT_OR_WRONG, RIGHT_OR_WRONG), min_size=1, max_size=60))
def test_cohens_kappa_equals_scikit_learns(rows: list[tuple[bool, bool]]) -> None:
    found = cohen_kappa(Counter(rows))
    assert found.n == len(rows)
    assert found.percent == pytest.approx(100 * sum(one == other for one, other in rows) / len(rows))
    if len({label for row in rows for label in row}) == 1:
        assert (found.kappa, found.low, found.high) == (None, None, None)
        return
    first, second = zip(*rows, strict=True)
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
    if len(rows) > 1:
        assert found.low is not None
        assert found.high is not None
        assert -1 <= found.low <= (found.kappa or 0) <= found.high <= 1


def test_fleiss_kappa_of_psychiatric_diagnoses() -> None:
    found = fleiss_kappa(Counter(tuple(labels) for labels in DIAGNOSES))
    assert found.n == 30
    assert found.percent == pytest.approx(55.6, abs=0.05)
    assert found.kappa == pytest.approx(0.430, abs=5e-4)


def test_fleiss_kappa_of_fourteen_raters() -> None:
    rows = [tuple(name for name, votes in enumerate(row) for _ in range(votes)) for row in FOURTEEN_RATERS]
    found = fleiss_kappa(Counter(rows))
    assert found.percent == pytest.approx(37.8, abs=0.05)
    assert found.kappa == pytest.approx(0.210, abs=5e-4)


def test_the_order_of_raters_does_not_matter_to_fleiss() -> None:
    counts = {(True, True, False): 5, (True, True, True): 9, (False, False, False): 4}
    found = [
        fleiss_kappa({tuple(row[n] for n in order): k for row, k in counts.items()})
        for order in permutations(range(3))
    ]
    assert all(one == found[0] for one in found)


def test_rows_may_be_counted_apart() -> None:
    assert fleiss_kappa({("a", "b"): 3, ("a", "a"): 2, ("b", "b"): 0}) == fleiss_kappa(
        {("b", "a"): 3, ("a", "a"): 2}
    )


@pytest.mark.parametrize("measure", [cohen_kappa, as_fleiss])
def test_intervals_are_those_of_resampled_rows(measure: Measure) -> None:
    counts = {(True, True): 190, (True, False): 30, (False, True): 50, (False, False): 130}
    rows = rows_of(counts)
    rng = np.random.default_rng(5)
    resampled = []
    for _ in range(600):
        drawn = Counter(rows[place] for place in rng.integers(0, len(rows), len(rows)).tolist())
        kappa = measure(drawn).kappa
        assert kappa is not None
        resampled.append(kappa)
    found = measure(counts)
    assert (found.low, found.high) == pytest.approx(tuple(np.percentile(resampled, (2.5, 97.5))), abs=0.02)


@pytest.mark.parametrize("measure", [cohen_kappa, as_fleiss])
def test_intervals_are_those_of_the_jackknife(measure: Measure) -> None:
    # Labels that are far from even: there chance agreement wavers most.
    counts = {(True, True): 3_400, (True, False): 200, (False, True): 200, (False, False): 200}
    n = sum(counts.values())
    found = measure(counts)
    assert found.kappa is not None
    variance = 0.0
    for left_out, count in counts.items():
        kappa = measure({**counts, left_out: count - 1}).kappa
        assert kappa is not None
        variance += (n - 1) / n * count * (kappa - found.kappa) ** 2
    half = 1.959964 * variance**0.5
    assert (found.low, found.high) == pytest.approx((found.kappa - half, found.kappa + half), abs=half / 200)


def test_a_lower_level_gives_a_narrower_interval() -> None:
    several = {tuple(labels): count for labels, count in SKIN.items()}
    for usual, narrow in (
        (cohen_kappa(SKIN), cohen_kappa(SKIN, level=0.5)),
        (fleiss_kappa(several), fleiss_kappa(several, level=0.5)),
    ):
        assert usual.kappa == narrow.kappa
        assert (usual.low or 0) < (narrow.low or 0) < (narrow.high or 0) < (usual.high or 0)


@pytest.mark.parametrize("counts", [{}, {(True, False): 0}])
def test_without_rows_there_is_nothing(counts: dict[tuple[bool, bool], int]) -> None:
    nothing = Kappa(n=0, percent=None, kappa=None, low=None, high=None)
    assert cohen_kappa(counts) == as_fleiss(counts) == nothing
    assert krippendorff_alpha(Counter[tuple[bool | None, ...]]()) is None


@pytest.mark.parametrize("label", [True, False])
def test_where_all_labels_are_one_chance_explains_everything(label: bool) -> None:
    expected = Kappa(n=7, percent=100.0, kappa=None, low=None, high=None)
    assert cohen_kappa({(label, label): 7}) == expected
    assert fleiss_kappa({(label, label, label): 7}) == expected
    assert krippendorff_alpha({(label, label, None): 7}) is None


def test_one_row_has_a_kappa_without_interval() -> None:
    assert cohen_kappa({(True, False): 1}) == Kappa(n=1, percent=0.0, kappa=0.0, low=None, high=None)
    assert fleiss_kappa({(True, False): 1}) == Kappa(n=1, percent=0.0, kappa=-1.0, low=None, high=None)


def test_full_agreement_on_two_labels_is_one() -> None:
    perfect = Kappa(n=10, percent=100.0, kappa=1.0, low=1.0, high=1.0)
    assert cohen_kappa({(True, True): 6, (False, False): 4}) == perfect
    assert fleiss_kappa({(True,) * 3: 6, (False,) * 3: 4}) == perfect
    assert krippendorff_alpha({(True,) * 3: 6, (False,) * 3: 4}) == 1.0


def test_a_judge_that_says_one_thing_agrees_as_chance_would() -> None:
    found = cohen_kappa({(True, True): 20, (True, False): 5})
    assert (found.percent, found.kappa, found.low, found.high) == (80.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize("counts", [{(True,): 3}, {(True, True): 3, (True, True, False): 1}])
def test_fleiss_wants_as_many_labels_in_each_row(counts: dict[tuple[bool, ...], int]) -> None:
    with pytest.raises(ValueError, match="same number of labels"):
        fleiss_kappa(counts)


@pytest.mark.parametrize(
    ("raters", "alpha"),
    [(TWO_OBSERVERS_BINARY, 0.095), (TWO_OBSERVERS_NOMINAL, 0.692), (FOUR_OBSERVERS, 0.743)],
)
def test_krippendorffs_own_examples(raters: tuple[str, ...], alpha: float) -> None:
    assert krippendorff_alpha(by_row(raters)) == pytest.approx(alpha, abs=5e-4)


def test_rows_with_fewer_than_two_labels_say_nothing_to_alpha() -> None:
    counts: dict[tuple[bool | None, ...], int] = {(True, True): 5, (True, False): 2, (False, False): 4}
    without = krippendorff_alpha(counts)
    assert krippendorff_alpha({**counts, (True, None): 9, (None, None): 3}) == without
    assert krippendorff_alpha({(True, None): 9}) is None


def alpha_by_pairs(rows: list[tuple[Hashable, ...]]) -> float | None:
    """1 - D_o / D_e as defined: disagreement of pairs within rows, over that of all pairs of labels."""
    given_labels = [[label for label in row if label is not None] for row in rows]
    units = [labels for labels in given_labels if len(labels) > 1]
    everything = [label for labels in units for label in labels]
    total = len(everything)
    observed = sum(
        sum(one != other for one, other in permutations(labels, 2)) / (len(labels) - 1) for labels in units
    )
    expected = sum(one != other for one, other in permutations(everything, 2))
    return 1 - (observed / total) / (expected / (total * (total - 1))) if expected else None


@given(rows=st.lists(st.tuples(VERDICTS, VERDICTS, VERDICTS, VERDICTS), max_size=12))
def test_alpha_equals_its_definition_by_pairs(rows: list[tuple[bool | None, ...]]) -> None:
    found, expected = krippendorff_alpha(Counter(rows)), alpha_by_pairs(list(rows))
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected)
