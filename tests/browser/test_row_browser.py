"""The row browser as its reader meets it: in a real Chromium, wide and narrow, light and dark, by keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mmbu_async import api
from tests.hostile import LONG, LONG_WORD, MARK, RUN, TEXTS, hostile_rows, hostile_run, steering
from tests.stored_run import RunMaker
from tests.viewer_kit import FIRST, SECOND, served, two_runs
from tests.whole_run import KEY

if TYPE_CHECKING:
    from tests.browser.conftest import Chromium

DESKTOP, PHONE = 1280, 390
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        return two_runs(tmp_path_factory.mktemp("rows"))


@pytest.fixture
def site(store: Path) -> Iterator[str]:
    with served(store, SECOND, FIRST) as address:
        yield address


@pytest.fixture
def hostile_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def no_data(*_: object) -> object:
        raise LookupError

    # The run names the hub's data; nothing is fetched.
    monkeypatch.setattr("mmbu_async.viewer.pictures.open_data", no_data)
    with ExitStack() as stack:
        make = RunMaker(tmp_path / "store.sqlite", stack)
        store, _ = hostile_run(make)
        hostile_run(make, name="other")
        yield stack.enter_context(served(store.path, RUN, "other"))


def fits(page: Any) -> bool:
    """Whether the page has no horizontal scroll of its own."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))


def focused(page: Any) -> str:
    """What the keyboard is at."""
    return str(page.evaluate("document.activeElement?.textContent?.trim() ?? ''"))


def settled(page: Any) -> None:
    page.wait_for_load_state("networkidle")


def expect(locator: Any) -> Any:
    """Waits for what is said of it."""
    from playwright.sync_api import expect

    return expect(locator)


def key_of(store: Path, condition: Any) -> int:
    return next(row.key for row in api.rows(SECOND, store=store) if condition(row))


def has_boxes(row: Any) -> bool:
    return bool(row.score and row.score.detail.get("predicted"))


@WIDTHS
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_list_fits_and_is_complete(chromium: Chromium, site: str, width: int, dark: bool) -> None:
    page = chromium.open(site, width=width, dark=dark)
    settled(page)
    assert page.locator("ol.rows > li").count() == 33
    assert fits(page)
    assert page.title() == "Rows of second"
    small = page.locator(".thumb img").first
    assert small.evaluate("image => image.complete && image.naturalWidth > 0")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    chromium.shoot(page, f"rows-list-{width}-{'dark' if dark else 'light'}", whole=False)


@WIDTHS
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_boxes_lie_where_their_pixels_are(
    chromium: Chromium, site: str, store: Path, width: int, dark: bool
) -> None:
    row = next(row for row in api.rows(SECOND, store=store) if has_boxes(row))
    assert row.score is not None
    page = chromium.open(f"{site}row?key={row.key}", width=width, dark=dark)
    settled(page)
    picture = page.locator(".stage img").bounding_box()
    natural = page.locator(".stage img").evaluate("image => [image.naturalWidth, image.naturalHeight]")
    scale = picture["width"] / natural[0]
    assert picture["height"] == pytest.approx(natural[1] * scale, abs=1)
    assert scale != 1
    for kind, name in (("truth", "truth"), ("predicted", "predicted")):
        drawn = page.locator(f".stage g.{kind} rect.line")
        boxes = row.score.detail[name]
        assert drawn.count() == len(boxes)
        for number, (x, y, wide, high) in enumerate(boxes):
            # The fill's box, without the stroke, which does not scale.
            found = drawn.nth(number).evaluate(
                """rect => {
                    const box = rect.getBBox(), matrix = rect.getScreenCTM();
                    const from = new DOMPoint(box.x, box.y).matrixTransform(matrix);
                    const to = new DOMPoint(box.x + box.width, box.y + box.height).matrixTransform(matrix);
                    return [from.x, from.y, to.x - from.x, to.y - from.y];
                }"""
            )
            wanted = [picture["x"] + x * scale, picture["y"] + y * scale, wide * scale, high * scale]
            assert found == pytest.approx(wanted, abs=0.75)
    strokes = page.evaluate(
        """[...document.querySelectorAll('.stage rect.line')].map(rect => {
            const style = getComputedStyle(rect);
            return [style.stroke, style.strokeDasharray];
        })"""
    )
    assert len({tuple(stroke) for stroke in strokes}) == 3
    assert len({dash for _, dash in strokes}) == 3
    assert fits(page)
    chromium.shoot(page, f"rows-row-{width}-{'dark' if dark else 'light'}")


def test_boxes_can_be_put_away(chromium: Chromium, site: str, store: Path) -> None:
    page = chromium.open(f"{site}row?key={key_of(store, has_boxes)}")
    truth = page.locator(".stage g.truth rect.line").first
    assert truth.is_visible()
    page.locator(".show-truth").uncheck()
    assert truth.is_hidden()
    assert page.locator(".stage g.predicted rect.line").first.is_visible()
    page.locator("body").press("t")
    assert truth.is_visible()
    before = page.locator(".stage img").bounding_box()["width"]
    page.locator(".full-size").check()
    after = page.locator(".stage img").bounding_box()
    overlay = page.locator(".stage > svg").bounding_box()
    assert after["width"] == 160 != before
    assert [overlay[name] for name in ("x", "y", "width", "height")] == pytest.approx(
        [after[name] for name in ("x", "y", "width", "height")], abs=0.75
    )


def test_the_whole_way_by_keys_alone(chromium: Chromium, site: str) -> None:
    page = chromium.open(site)
    keys = page.keyboard
    keys.press("/")
    assert page.evaluate("document.activeElement.id") == "q"
    keys.type("red box")
    keys.press("Enter")
    page.wait_for_url(re.compile("q=red"))
    rows = page.locator("ol.rows > li")
    count = rows.count()
    assert 1 < count < 33
    # j and k move; letters typed into the field are no commands.
    keys.press("j")
    first = page.locator("a.open").nth(0).inner_text()
    assert focused(page) == first
    keys.press("j")
    assert focused(page) == page.locator("a.open").nth(1).inner_text()
    outline = rows.nth(1).evaluate("row => getComputedStyle(row).outlineWidth")
    assert outline != "0px"
    keys.press("k")
    keys.press("Enter")
    page.wait_for_url(re.compile("row\\?"))
    assert first in page.locator("h1").inner_text()
    assert f"1 of {count} rows" in page.locator(".steps").first.inner_text()
    keys.press("j")
    expect(page.locator(".steps").first).to_contain_text(f"2 of {count} rows")
    keys.press("ArrowLeft")
    expect(page.locator(".steps").first).to_contain_text(f"1 of {count} rows")
    keys.press("?")
    assert page.locator("dialog").is_visible()
    keys.press("Escape")
    assert page.locator("dialog").is_hidden()
    keys.press("u")
    page.wait_for_url(re.compile("#row-"))
    expect(page.locator("a.open").first).to_be_focused()
    assert focused(page) == first
    assert rows.count() == count


def test_every_control_is_reached_by_tab_and_shows_it(chromium: Chromium, site: str, store: Path) -> None:
    for path in ("", f"row?key={key_of(store, has_boxes)}"):
        page = chromium.open(f"{site}{path}")
        wanted = page.evaluate(
            """[...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
                .filter(one => one.checkVisibility() && !one.closest('dialog') && one.type !== 'hidden'
                    && one.getClientRects().length).length"""
        )
        reached: list[str] = []
        for _ in range(wanted + 2):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                """(() => {
                    const one = document.activeElement;
                    if (!one || one === document.body) return null;
                    const ring = getComputedStyle(one), row = one.closest('li');
                    const shown = [ring, row && getComputedStyle(row)]
                        .some(one => one && one.outlineStyle !== 'none' && one.outlineWidth !== '0px');
                    one.dataset.reached ??= String(document.querySelectorAll('[data-reached]').length);
                    return [one.dataset.reached, shown, one.outerHTML.slice(0, 120)];
                })()"""
            )
            if seen is None:
                continue
            assert seen[1], f"no focus to be seen at {seen[2]}"
            reached.append(seen[0])
        assert len(set(reached)) >= wanted


def test_controls_have_names(chromium: Chromium, site: str, store: Path) -> None:
    for path in ("", f"row?key={key_of(store, has_boxes)}", "?outcome=odd"):
        page = chromium.open(f"{site}{path}")
        nameless = page.evaluate(
            """[...document.querySelectorAll('a[href], button, input, select, [role=region]')]
                .filter(one => one.type !== 'hidden')
                .filter(one => !(one.getAttribute('aria-label') || one.innerText?.trim()
                    || [...(one.labels ?? [])].some(label => label.innerText.trim())))
                .map(one => one.outerHTML.slice(0, 150))"""
        )
        # What is only in the closed dialog has no text that is laid out.
        assert [one for one in nameless if "keys" not in one] == []
        assert page.locator("h1").count() == 1
        assert page.locator("main").count() == 1
        assert page.locator("html").get_attribute("lang") == "en"
        images = page.locator("img:not([alt])")
        assert images.count() == 0
    chromium.complaints.clear()  # of the address that means nothing: it is answered with 400


@WIDTHS
def test_filters_work_with_the_pointer(chromium: Chromium, site: str, width: int) -> None:
    page = chromium.open(site, width=width)
    if width == PHONE:
        page.locator(".filters summary").tap()
    family = page.locator("#family")
    assert family.is_visible()
    family.select_option("counting")
    page.locator("#stratum").select_option("metadata_modality=light microscopy")
    button = page.locator(".filters details button")
    button.tap() if width == PHONE else button.click()
    page.wait_for_url(re.compile("family=counting&stratum=metadata_modality=light"))
    assert "how=" not in page.url
    assert 0 < page.locator("ol.rows > li").count() < 33
    assert fits(page)
    page.locator("nav.tabs a.wrong").first.click()
    page.wait_for_url(re.compile("outcome=wrong"))
    assert "family=counting&stratum=" in page.url
    page.get_by_text("Clear all filters").first.click()
    page.wait_for_url(re.compile("^[^&]*run=second&beside=first$"))
    assert page.locator("ol.rows > li").count() == 33


def test_a_choice_made_with_the_pointer_is_followed_at_once(chromium: Chromium, site: str) -> None:
    page = chromium.open(site)
    page.locator("#family").click()
    page.evaluate(
        """(() => {
            const family = document.querySelector('#family');
            family.value = 'counting';
            family.dispatchEvent(new Event('change', {bubbles: true}));
        })()"""
    )
    page.wait_for_url(re.compile("family=counting"))


def test_the_pages_work_without_scripts(chromium: Chromium, site: str) -> None:
    page = chromium.open(site, javascript=False)
    page.locator("#q").fill("red box")
    page.locator("#q").press("Enter")
    page.wait_for_url(re.compile("q=red"))
    page.locator("a.open").first.click()
    page.wait_for_url(re.compile("row\\?"))
    page.locator("a.next").first.click()
    page.wait_for_url(re.compile("row\\?"))
    page.locator(".open-keys").click()
    assert page.locator("dialog").is_visible()
    page.locator(".close-keys").click()
    assert page.locator("dialog").is_hidden()


@WIDTHS
def test_hostile_rows_break_nothing(chromium: Chromium, hostile_site: str, width: int) -> None:
    page = chromium.open(hostile_site, width=width)
    settled(page)
    assert page.locator("ol.rows > li").count() == len(hostile_rows())
    assert fits(page)
    chromium.shoot(page, f"rows-hostile-list-{width}", whole=False)
    names = [*TEXTS, "everything", "long", "word"]
    for name in ("script", "direction", "terminal", "nul", "everything", "long", "word"):
        page.goto(f"{hostile_site}row?key={names.index(name) + 1}")
        settled(page)
        assert fits(page), name
        assert page.evaluate(f"window.{MARK}") is None
        assert steering(page.locator("body").inner_text()) == []
        if name in ("direction", "long"):
            chromium.shoot(page, f"rows-hostile-{name}-{width}", whole=name == "direction")
    for text in (LONG, LONG_WORD):
        number = next(n for n, row in enumerate(hostile_rows(), start=1) if row.get("reply") == text)
        page.goto(f"{hostile_site}row?key={number}")
        box = page.get_by_role("region", name=re.compile("^Raw reply of run"))
        assert box.evaluate("box => box.textContent.trim().length") == len(text.strip())
        height, inner = box.evaluate("box => [box.clientHeight, box.scrollHeight]")
        assert 50 < height < 600 < inner
        box.focus()
        page.keyboard.press("End")
        for _ in range(200):
            if box.evaluate("box => box.scrollTop + box.clientHeight >= box.scrollHeight - 2"):
                break
            page.wait_for_timeout(20)
        else:
            raise AssertionError("the end cannot be reached by keys")


def test_a_printed_row_has_its_texts_whole(chromium: Chromium, hostile_site: str) -> None:
    number = next(n for n, row in enumerate(hostile_rows(), start=1) if row.get("reply") == LONG)
    page = chromium.open(f"{hostile_site}row?key={number}")
    page.emulate_media(media="print")
    box = page.get_by_role("region", name=re.compile("^Raw reply of run"))
    height, inner = box.evaluate("box => [box.clientHeight, box.scrollHeight]")
    assert height == inner > 10_000
    assert page.get_by_role("region", name="Prompt to the judge").first.is_visible()
    assert page.locator(".steps").first.is_hidden()


def test_links_are_kept_and_opened_again(chromium: Chromium, site: str) -> None:
    page = chromium.open(f"{site}?outcome=wrong&flip=gained&pictures=0")
    shown = page.locator("a.open").all_inner_texts()
    assert shown
    assert page.locator(".thumb").count() == 0
    again = chromium.open(page.url)
    assert again.locator("a.open").all_inner_texts() == shown
    assert json.dumps(again.locator("nav.tabs [aria-current]").all_inner_texts()).count("Wrong") == 1
