"""The page of a run in a real browser: fits a phone, asks for nothing, reads in the dark and on paper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async.report import build_report
from mmbu_async.report.compare import build_comparison
from mmbu_async.report.html import comparison_to_html, to_html
from tests.compared import make_runs
from tests.edges import EDGES, edge_run
from tests.hostile import MARK, hostile_run
from tests.stored_run import MakeRun, Row, RunMaker

if TYPE_CHECKING:
    from tests.browser.conftest import Chromium

DESKTOP, PHONE = 1280, 390
SIDES = ("top", "bottom", "left", "right")
PARTS = ("families", "detection", "maps", "strata", "lost", "replies", "cost", "run")


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[MakeRun]:
    with ExitStack() as stack:
        yield RunMaker(tmp_path / "store.sqlite", stack)


def full_run(make_run: MakeRun) -> str:
    """A page with every part, as long names as real ones have, and groups small and large."""
    random = Random(5)
    families = ("classification", "counting", "fine-grained classification (from segmentation)")
    rows: list[Row] = []
    for _ in range(150):
        right = random.random() < 0.7
        iou = random.random()
        strata = {
            "task": (random.choice(("nuclei", "blood cells", "optic disc")),),
            "metadata_modality": (random.choice(("light microscopy", "magnetic resonance imaging", "CT")),),
            "metadata_specimen": (f"specimen {int(20 * random.random() ** 2)}",),
        }
        boxes = {"max_iou": iou, "offered": 1, "box_tp": int(iou >= 0.5), "box_fp": 0, "box_fn": 1}
        rows.append(
            {
                "reply": "x",
                "correct": iou >= 0.5,
                "family": "object detection",
                "strata": strata,
                "detail": boxes,
            }
            if random.random() < 0.3
            else {
                "reply": "x",
                "judged": right,
                "family": random.choice(families),
                "strata": strata,
                "how": "untagged" if random.random() < 0.1 else "tag",
                "finish": "length" if random.random() < 0.1 else "stop",
            }
        )
    return to_html(build_report(*make_run(rows)))


def shown(chromium: Chromium, html: str, folder: Path, **options: Any) -> Any:
    file = folder / "report.html"
    file.write_text(html, encoding="utf-8")
    return chromium.open(file.as_uri(), **options)


def sideways(page: Any) -> int:
    """Pixels by which the page is wider than its window."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def moved(page: Any, frame: Any) -> bool:
    """Whether a frame scrolls sideways within some seconds: the policy forbids what would wait for it."""
    for _ in range(200):
        if frame.evaluate("one => one.scrollLeft") > 0:
            return True
        page.wait_for_timeout(50)
    return False


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_every_part_is_shown_and_fits(
    width: int, dark: bool, chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    page = shown(chromium, full_run(make_run), tmp_path, width=width, dark=dark)
    assert sideways(page) <= 0
    for part in PARTS:
        assert page.locator(f"section#{part} h2").is_visible(), part
    for drawing in page.locator("svg").all():
        assert drawing.bounding_box()["width"] > 250
    chromium.shoot(page, f"report-{width}-{'dark' if dark else 'light'}")


def test_colours_follow_what_the_reader_prefers(
    chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    html = full_run(make_run)
    colours = []
    for dark in (False, True):
        page = shown(chromium, html, tmp_path, dark=dark)
        script = """() => {
            const text = document.querySelector('#families-accuracy svg text[style*="--ink"]');
            return [getComputedStyle(document.body).backgroundColor, getComputedStyle(text).fill];
        }"""
        paper, ink = (_brightness(colour) for colour in page.evaluate(script))
        assert abs(paper - ink) > 150
        colours.append(paper > ink)
    assert colours == [True, False]


def _brightness(colour: str) -> float:
    """Of `rgb(r, g, b)`, from 0 to 255."""
    return sum(float(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3


def test_letters_of_figures_are_no_smaller_than_print_on_a_phone(
    chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    page = shown(chromium, full_run(make_run), tmp_path, width=PHONE)
    heights = page.evaluate(
        "[...document.querySelectorAll('.plot svg text')].map(one => parseFloat(one.style.fontSize) *"
        " one.getScreenCTM().a)"
    )
    assert min(heights) >= 8.5


def test_no_name_in_a_figure_lies_on_its_numbers(
    chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    page = shown(chromium, full_run(make_run), tmp_path)
    overlaps = page.evaluate(
        """() => [...document.querySelectorAll('#families svg, #strata svg, #lost svg')].flatMap(svg => {
            const texts = [...svg.querySelectorAll('text')].map(
                one => [one.textContent, one.getBoundingClientRect()]);
            return texts.flatMap(([one, a], at) => texts.slice(at + 1).filter(([, b]) =>
                a.left < b.right - 0.5 && b.left < a.right - 0.5 &&
                a.top < b.bottom - 4 && b.top < a.bottom - 4
            ).map(([other]) => one + ' / ' + other));
        })"""
    )
    assert overlaps == []


def test_tables_and_maps_scroll_by_themselves_with_the_keyboard(
    chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    page = shown(chromium, full_run(make_run), tmp_path, width=PHONE)
    frame = page.locator("#families .scroll")
    frame.focus()
    assert frame.evaluate("one => one.scrollWidth > one.clientWidth")
    page.keyboard.press("ArrowRight")
    assert moved(page, frame)
    details = page.locator("#strata details").first
    details.locator("summary").focus()
    page.keyboard.press("Enter")
    assert details.locator("table").is_visible()
    assert sideways(page) <= 0


def test_the_data_of_a_figure_can_be_saved(chromium: Chromium, make_run: MakeRun, tmp_path: Path) -> None:
    page = shown(chromium, full_run(make_run), tmp_path)
    with page.expect_download() as caught:
        page.locator("#families-accuracy a[download]").click()
    assert caught.value.suggested_filename == "families-accuracy.csv"
    caught.value.save_as(tmp_path / "saved.csv")
    lines = (tmp_path / "saved.csv").read_text("utf-8-sig").splitlines()
    assert lines[0].startswith("task_family,rows,right")
    assert len(lines) == 5


def test_the_page_needs_no_script(chromium: Chromium, make_run: MakeRun, tmp_path: Path) -> None:
    page = shown(chromium, full_run(make_run), tmp_path, javascript=False)
    assert page.locator("section#run dl").is_visible()


def test_paper_is_light_whole_and_has_every_figure(
    chromium: Chromium, make_run: MakeRun, screenshots: Path, tmp_path: Path
) -> None:
    # A4 less its margins.
    page = shown(chromium, full_run(make_run), tmp_path, width=680, dark=True)
    page.emulate_media(media="print")
    assert sideways(page) <= 0
    assert _brightness(page.evaluate("getComputedStyle(document.body).backgroundColor")) == 255
    assert not page.locator("nav").is_visible()
    assert page.locator("figure svg").first.is_visible()
    file = screenshots / "report-print.pdf"
    page.pdf(path=file, format="A4", margin=dict.fromkeys(SIDES, "15mm"))
    assert file.read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_a_comparison_is_shown_and_fits(
    width: int, dark: bool, chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    store, runs = make_runs(make_run, *compared_outcomes(), shape=compared_row)
    html = comparison_to_html(build_comparison(store, runs))
    page = shown(chromium, html, tmp_path, width=width, dark=dark)
    assert sideways(page) <= 0
    for part in ("runs", "pair-1", "pair-2", "compared"):
        assert page.locator(f"section#{part} h2").is_visible(), part
    chromium.shoot(page, f"comparison-{width}-{'dark' if dark else 'light'}")


def compared_outcomes() -> list[str]:
    """Three runs over 200 rows, the second a little better than the first, the third worse on few."""
    random = Random(7)
    first = "".join(random.choice("++-") for _ in range(200))
    second = "".join("+" if one == "-" and random.random() < 0.4 else one for one in first)
    third = "".join("-" if random.random() < 0.05 else one for one in first)
    return [first, second, third]


def compared_row(number: int) -> Row:
    families = ("counting", "fine-grained classification (from detection)", "object detection")
    modality = ("light microscopy", "magnetic resonance imaging")[number % 2]
    return {
        "id": f"row {number}",
        "family": families[number % 3],
        "strata": {"task": (f"topic {number % 15}",), "metadata_modality": (modality,)},
    }


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_hostile_text_does_nothing(width: int, chromium: Chromium, make_run: MakeRun, tmp_path: Path) -> None:
    page = shown(chromium, to_html(build_report(*hostile_run(make_run))), tmp_path, width=width)
    assert page.evaluate(f"window.{MARK}") is None
    assert page.locator("img").count() == page.locator("script").count() == 0
    assert f"<script>window.{MARK}=1</script>" in page.locator("body").inner_text()
    assert sideways(page) <= 0
    chromium.shoot(page, f"report-hostile-{width}")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_hostile_text_does_nothing_in_a_comparison(
    width: int, chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    store, one = hostile_run(make_run)
    _, other = hostile_run(make_run, name=f"second {MARK} <b>")
    html = comparison_to_html(build_comparison(store, [one, other]))
    page = shown(chromium, html, tmp_path, width=width)
    assert page.evaluate(f"window.{MARK}") is None
    assert page.locator("img").count() == page.locator("script").count() == 0
    assert sideways(page) <= 0


@pytest.mark.parametrize("name", ["empty", "one row, right", "some of each", "all failed"])
def test_runs_at_the_edges_fit_a_phone(
    name: str, chromium: Chromium, make_run: MakeRun, tmp_path: Path
) -> None:
    page = shown(chromium, to_html(build_report(*edge_run(make_run, name))), tmp_path, width=PHONE)
    assert EDGES[name].first_line in page.locator("header").inner_text()
    assert sideways(page) <= 0
    chromium.shoot(page, f"report-edge-{name.replace(', ', '-').replace(' ', '-')}")
