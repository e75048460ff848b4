"""Drawings: texts that fit, marks at their places, SVG that belongs to its page."""

from __future__ import annotations

import re
import warnings
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from mmbu_async.report.distributions import Spreads
from mmbu_async.report.html.bars import Change, Loss, Outcomes, changes, losses, outcomes
from mmbu_async.report.html.forest import LEFT, RIGHT, Mark, forest
from mmbu_async.report.html.labels import lines, width
from mmbu_async.report.html.plot import drawing
from mmbu_async.report.html.scatter import Point, scatter
from mmbu_async.report.html.spreads import merged, overlap, spread
from mmbu_async.store.outcomes import Spent


def mark(**values: float | str | bool | tuple[float, float] | None) -> Mark:
    given = {"name": "counting", "n": 100, "value": 0.5, "low": 0.4, "high": 0.6, **values}
    return Mark(**given)  # type: ignore[arg-type]


def texts(svg: str) -> list[str]:
    return [one.text or "" for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text")]  # noqa: S314


# ---------------------------------------------------------------- texts


def test_names_wrap_between_words_and_long_words_break() -> None:
    assert lines("light microscopy", 200) == ["light microscopy"]
    assert lines("fine-grained classification", 100) == ["fine-grained", "classification"]
    broken = lines("w" * 40, 100, most=9)
    assert "".join(broken) == "w" * 40
    assert all(width(line) <= 100 for line in broken)


def test_what_does_not_fit_ends_in_an_ellipsis() -> None:
    found = lines("one two three four five six seven eight", 40, most=2)
    assert len(found) == 2
    assert found[-1].endswith("…")
    assert all(width(line) <= 40 for line in found)
    (cut,) = lines("x" * 100_000, 80, most=1)
    assert cut.endswith("…")


def test_chinese_takes_twice_the_room_and_accents_none() -> None:
    assert width("核") > 1.8 * width("n")
    assert width("e\u0301") == width("e")


@pytest.mark.parametrize(
    "text", ["$x_1$", r"$\frac{", "{{x}}", "核 العربية 🧬", "a\x00b\x1b[2J", "<b>&amp;", "t00001"]
)
def test_any_text_is_drawn_as_text_without_a_warning(text: str) -> None:
    with warnings.catch_warnings(), drawing(100, 40) as plot:
        warnings.simplefilter("error")
        plot.text(10, 10, "before")
        plot.text(10, 20, text)
        svg = plot.svg("one", text)
    shown = text.replace("\x00", r"\x00").replace("\x1b", r"\x1b")
    assert texts(svg) == ["before", shown]


# ---------------------------------------------------------------- SVG in a page


def test_ids_are_the_figures_own_and_styles_stay_inside() -> None:
    svgs = [forest(name, "a label", [mark(), mark(bounds=(0.3, 0.7), value=None)]) for name in ("one", "two")]
    ids = [set(re.findall(r' id="([^"]+)"', svg)) for svg in svgs]
    assert ids[0] and all(found.startswith("one-") for found in ids[0])
    assert not ids[0] & ids[1]
    for svg in svgs:
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg)) <= ids[svgs.index(svg)]
        assert not re.search(r"<style|<metadata|<!--|http://(?!www\.w3\.org/2000/svg)|DejaVu|#0a00", svg)


def test_colours_are_those_of_the_page() -> None:
    svg = forest("one", "a label", [mark()])
    assert {"var(--ink)", "var(--accent)", "var(--muted)"} <= set(re.findall(r"var\(--\w+\)", svg))
    assert not re.search(r"(?:fill|stroke): #", svg)


# ---------------------------------------------------------------- places


def places(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r'<use [^>]*x="([\d.]+)" y="([\d.]+)"', svg)]


def test_a_point_stands_at_its_value_and_the_line_spans_the_interval() -> None:
    svg = forest("one", "a label", [mark(value=0.25, low=0.0, high=1.0)])
    ((x, _),) = places(svg)
    assert x == pytest.approx(LEFT + 0.25 * (RIGHT - LEFT), abs=0.01)
    assert f"M {LEFT:g} " in svg
    assert re.search(rf"L {RIGHT:g} ", svg)
    assert "0.250" in texts(svg)


def test_few_rows_are_hollow_and_starred_not_only_coloured() -> None:
    small, large = (forest("one", "a label", [mark(small=small)]) for small in (True, False))
    assert "*" in texts(small)
    assert "*" not in texts(large)
    assert re.search(r"<use [^>]*fill: var\(--paper\)", small)
    assert re.search(r"<use [^>]*fill: var\(--accent\)", large)


def test_losses_are_drawn_in_proportion_and_open_rows_hatched() -> None:
    found = [Loss(name="tag", n=90, wrong=0.2, open=0.0), Loss(name="failed", n=10, wrong=0.0, open=0.1)]
    svg = losses("one", "a label", found)
    assert texts(svg)[2::3] == ["0.200", "0.000–0.100"]
    assert "url(#one-" in svg  # the pattern of the hatch
    assert "url(#" not in losses("one", "a label", found[:1])


def test_a_loss_is_hatched_and_a_gain_filled() -> None:
    def drawn(value: float) -> str:
        return changes("one", "a label", [Change(name="x", n=50, value=value, low=None, high=None)])

    assert "url(#" in drawn(-0.1)
    assert "url(#" not in drawn(0.1)
    assert "\u22120.100" in texts(drawn(-0.1))


@pytest.mark.parametrize("value", [None, 0.0, 1.0, -1.0])
def test_any_difference_can_be_drawn(value: float | None) -> None:
    for bars in (True, False):
        svg = changes("one", "x", [Change(name="x", n=0, value=value, low=value, high=value)], bars=bars)
        assert "nan" not in svg


def test_outcomes_of_no_rows_are_an_empty_bar() -> None:
    none = Outcomes(name="x", n=0, wins=0, ties_right=0, ties_wrong=0, losses=0)
    assert "0 : 0" in texts(outcomes("one", "x", [none]))
    few = Outcomes(name="x", n=4, wins=1, ties_right=1, ties_wrong=1, losses=1, small=True)
    assert {"1 : 1", "*"} <= set(texts(outcomes("one", "x", [few])))


# ---------------------------------------------------------------- histograms


def spent(seconds: float) -> Spent:
    return Spent(total_s=seconds, first_token_s=None, input_tokens=None, output_tokens=0, reasoning_tokens=0)


@pytest.mark.parametrize("values", [[1.0], [0.001, 1000.0], [1.0, 1.01, 1.02], [5.0] * 1000, [1e-9, 1e9]])
def test_any_spread_can_be_drawn_and_its_marks_lie_inside(values: list[float]) -> None:
    counted = Spreads()
    for value in values:
        counted.add(spent(value))
    found = counted.distributions().total_s
    assert found is not None
    svg = spread("one", "a label", found, lambda value: f"{value:.3g} s")
    assert "nan" not in svg
    assert sum(name.startswith(("median", "p90", "p99")) for name in texts(svg)) == 3
    numbers = [float(one) for one in re.findall(r"(?:M|L) ([\d.-]+) ", svg)]
    assert min(numbers) >= -1
    assert max(numbers) <= 391


def test_zeros_stand_beside_the_logarithm_in_a_bar_of_their_own() -> None:
    counted = Spreads()
    for seconds in (0.0, 0.0, 0.0, 2.0, 3.0):
        counted.add(spent(seconds))
    found = counted.distributions().total_s
    assert found is not None
    svg = spread("one", "a label", found, lambda value: f"{value:g}")
    assert "0" in texts(svg)
    assert "url(#" in svg  # hatched
    assert not any(name.startswith("median") for name in texts(svg))  # it is 0


def test_names_of_quantiles_lie_on_no_line_of_another() -> None:
    counted = Spreads()
    for seconds in [1.0] * 5 + [90.0] * 85 + [95.0] * 10:
        counted.add(spent(seconds))
    found = counted.distributions().total_s
    assert found is not None
    svg = spread("one", "a label", found, lambda value: f"{value:.4g} s")
    lines = [
        (float(x), float(top))
        for x, top in re.findall(r'M ([\d.]+) ([\d.]+)\s+L [\d.]+ [\d.]+\s+" style="[^"]*dasharray', svg)
    ]
    assert len(lines) == 3
    for x, y, anchor, name in _placed_texts(svg):
        if name.startswith(("median", "p9")):
            left = x if anchor == "start" else x - width(name, 11)
            crossed = [at for at, top in lines if left < at < left + width(name, 11) and top < y - 6]
            assert crossed == [], name


def _placed_texts(svg: str) -> list[tuple[float, float, str, str]]:
    found = re.findall(r'text-anchor: (\w+)[^"]*" x="([\d.]+)" y="([\d.]+)">([^<]*)<', svg)
    return [(float(x), float(y), anchor, name) for anchor, x, y, name in found]


def test_merging_bins_loses_no_row() -> None:
    counted = Spreads()
    for number in range(1, 2_000):
        counted.add(spent(number / 7))
    found = counted.distributions().total_s
    assert found is not None
    bars = merged(found.bins, 30)
    assert len(bars) <= 31
    assert sum(one.count for one in bars) == 1_999
    assert all(one.high <= after.low + 1e-9 for one, after in pairwise(bars))
    assert bars[0].low <= found.least < bars[0].high
    assert merged((), 30) == ()


def test_overlaps_below_one_half_are_hatched() -> None:
    counted = Spreads()
    counted.add_iou(0.9, correct=True)
    found = counted.distributions().max_iou
    assert found is not None
    assert "url(#" not in overlap("one", "a label", found)
    counted.add_iou(0.2, correct=False)
    below = counted.distributions().max_iou
    assert below is not None
    assert "url(#" in overlap("one", "a label", below)


@pytest.mark.parametrize(
    "points", [[Point(name="1", x=1.0, y=0.0)], [Point(name=str(n), x=n * 1e6, y=float(n)) for n in range(3)]]
)
def test_points_lie_inside_with_and_without_a_line(points: list[Point]) -> None:
    for line in (None, (1e-6, 0.0)):
        svg = scatter("one", "a label", points, x_name="size", y_name="rate", line=line)
        assert len(places(svg)) == len(points)
        assert all(0 <= x <= 390 and 0 <= y <= 280 for x, y in places(svg))
