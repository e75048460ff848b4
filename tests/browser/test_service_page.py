"""The live page of the service in a real Chromium: how it looks, follows and steers, also unseen."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.service.auth import Token
from mmbu_async.service.guard import Guard
from mmbu_async.service.jobs import JobState
from tests.browser.conftest import DESKTOP, PHONE, Chromium
from tests.hostile import EVERYTHING, IMAGE, MARK, RUN, TEXTS, steering
from tests.service_kit import TOKEN, FakeDesk, Site, served

BUSY, LONG = "mmbu-public-model", "night-" + "x" * 70
PAGES = ("", f"run?name={BUSY}", "new")


@pytest.fixture
def site(tmp_path: Path, chromium: Chromium) -> Iterator[Site]:
    with serving(chromium, tmp_path, desk=busy_desk()) as found:
        yield found


@contextmanager
def serving(chromium: Chromium, folder: Path, **options: Any) -> Iterator[Site]:
    """A service whose pages are closed before it goes away."""
    with served(folder / "store.sqlite", **options) as found:
        yield found
        chromium.leave()


def busy_desk() -> FakeDesk:
    desk = FakeDesk()
    states = {BUSY: JobState.RUNNING, LONG: JobState.QUEUED, "held": JobState.PAUSED, "over": JobState.DONE}
    for name, state in states.items():
        settings = {"model": "m-1", "benchmark": "mmbu-public", "name": name}
        desk.add(name, state, settings=settings)
    now = time.time()
    for step in range(120):
        silent = 40 < step < 50
        desk.move(
            BUSY,
            step * 20,
            3147,
            at=now - 1200 + 10 * step,
            rows_per_s=4 + math.sin(step / 9),
            cost_usd=step * 0.03,
            errors={"rate_limit": 12, "timeout": 3},
            waiting="model: no call for another 12 s, as it asked",
            latency_p50_s=None if silent else 1 + math.sin(step / 20) / 3,
            latency_p95_s=None if silent else 2.5,
        )
    desk.move("held", 40)
    desk.move("over", 100, eta_s=0.0)
    for number in range(40):
        desk.log(BUSY, f"14:00:{number:02} info    {number * 20}/3,147 rows")
    return desk


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as expecting

    return expecting(locator)


def card(page: Any, run: str) -> Any:
    return page.locator("ul.runs > li").filter(has=page.get_by_role("link", name=run, exact=True))


def fits(page: Any) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_what_is_not_known_to_cost_anything_is_not_called_free(chromium: Chromium, tmp_path: Path) -> None:
    desk = FakeDesk()
    cases = [("none", 0.0, 2, "unknown, of 2 calls"), ("some", 1.5, 1, "$1.50, 1 call of unknown cost")]
    for name, cost_usd, unknown, _ in cases:
        desk.add(name, JobState.RUNNING, settings={"model": "m-1", "benchmark": "mmbu-public", "name": name})
        desk.move(name, 4, cost_usd=cost_usd, cost_unknown=unknown)
    with serving(chromium, tmp_path, desk=desk) as site:
        page = chromium.open(f"{site.url}/")
        for name, _, _, said in cases:
            expect(card(page, name)).to_contain_text(said)


def test_pages_fit_and_can_be_read(chromium: Chromium, site: Site) -> None:
    named = zip(PAGES, ("runs", "run", "new"), strict=True)
    for (path, name), width, dark in product(named, (DESKTOP, PHONE), (False, True)):
        page = chromium.open(f"{site.url}/{path}", width=width, dark=dark)
        if name == "runs":
            expect(card(page, BUSY).locator("dd").nth(1)).to_have_text("2,380 of 3,147")
        elif name == "run":
            expect(page.locator("#charts path.line").first).to_have_attribute("d", re.compile("L"))
            assert page.locator("#charts path.line").count() == 4
        else:
            page.locator("#model").fill("m-1")
            page.locator("#ask").click()
            expect(page.locator("#start")).to_be_visible()
        chromium.shoot(page, f"service-{name}-{width}-{'dark' if dark else 'light'}")
        assert fits(page), name
        assert page.evaluate(CONTRASTS) == [], name


CONTRASTS = """(() => {
    const linear = v => v <= 10 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4;
    const light = rgb => {
        const [r, g, b] = rgb.map(linear);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const colour = text => text.match(/[\\d.]+/g).map(Number);
    const ground = node => {
        for (; node; node = node.parentElement) {
            const found = colour(getComputedStyle(node).backgroundColor);
            if (found.length === 3 || found[3] === 1) return found.slice(0, 3);
        }
        return [255, 255, 255];
    };
    const poor = [];
    for (const node of document.querySelectorAll('body *')) {
        const own = [...node.childNodes].some(one => one.nodeType === 3 && one.textContent.trim());
        if (!own || !node.checkVisibility() || node.closest('.unseen, .skip, svg, :disabled')) continue;
        const pair = [light(colour(getComputedStyle(node).color)), light(ground(node))];
        const [a, b] = pair.sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) poor.push([ratio.toFixed(2), node.outerHTML.slice(0, 80)]);
    }
    return poor;
})()"""


def test_the_list_follows_what_happens(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/")
    expect(page.locator("ul.runs > li")).to_have_count(4)
    # The newest is first, whatever order the events come in.
    assert page.locator("ul.runs h2").all_inner_texts() == ["over", "held", LONG, BUSY]
    site.do(lambda: site.desk.move(BUSY, 3000, 3147, rows_per_s=7.5, eta_s=75.0))
    expect(card(page, BUSY)).to_contain_text("3,000 of 3,147")
    expect(card(page, BUSY)).to_contain_text("7.5 rows/s")
    expect(card(page, BUSY)).to_contain_text("1 min 15 s")
    assert card(page, BUSY).locator("progress").evaluate("bar => bar.value / bar.max") == pytest.approx(
        3000 / 3147
    )
    site.do(lambda: site.desk.add("new one"))
    expect(page.locator("ul.runs h2").first).to_have_text("new one")
    site.do(lambda: site.desk.change(BUSY, JobState.DONE))
    expect(card(page, BUSY).locator(".badge")).to_have_text("done")
    expect(card(page, BUSY).get_by_role("button")).to_have_count(0)
    expect(page.locator("#summary")).to_contain_text("2 queued · 1 paused")


def test_a_run_is_steered_with_keys_alone(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/run?name={BUSY}")
    button = page.get_by_role("button", name="Pause")
    expect(button).to_be_visible()
    button.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#state .badge")).to_have_text("paused")
    # Who cannot see the badge hears it, and the focus is on what can be done next.
    expect(page.locator("#say")).to_have_text(re.compile("paused|pausing"))
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#state .badge")).to_have_text("running")
    cancel = page.get_by_role("button", name=re.compile("^Cancel"))
    cancel.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.locator("#state .badge")).to_have_text("running")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Yes").click()
    expect(page.locator("#state .badge")).to_have_text("cancelled")


def test_limits_and_priority_are_set(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/run?name={BUSY}")
    expect(page.locator("#limit-side option")).to_have_count(2)
    page.get_by_label("Requests a minute").fill("none")
    page.get_by_label("Calls at once").fill("7")
    page.get_by_role("button", name="Set limits").click()
    expect(page.locator("#say")).to_have_text("model: at most 4 calls at once")
    assert site.desk.asked == [("limit", {"concurrency": 7, "rpm": None})]
    page.get_by_label("Requests a minute").fill("many")
    page.get_by_role("button", name="Set limits").click()
    expect(page.locator("#say")).to_have_text(re.compile("neither a number"))
    page.get_by_role("spinbutton", name="Priority").fill("5")
    page.get_by_role("button", name="Set priority").click()
    expect(page.locator("#say")).to_have_text("Priority 5.")
    assert site.desk.job(BUSY).priority == 5


def test_charts_errors_and_log_go_on(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/run?name={BUSY}")
    expect(page.locator("#log")).to_contain_text("14:00:39")
    site.do(lambda: site.desk.log(BUSY, "the very last line"))
    expect(page.locator("#log")).to_contain_text("the very last line")
    assert page.locator("#log").inner_text().count("14:00:39") == 1
    site.do(
        lambda: site.desk.move(BUSY, 2400, 3147, rows_per_s=9.5, errors={"server_error": 1, "timeout": 40})
    )
    expect(page.locator("#errors tbody tr").first).to_contain_text("timeout")
    assert page.locator("#errors tbody tr").count() == 2
    drawn = page.locator("#charts svg").first
    expect(drawn).to_have_attribute("aria-label", "Throughput: 9.5/s")
    page.locator("#charts details").first.locator("summary").click()
    expect(page.locator("#charts tbody").first.locator("tr").last).to_contain_text("9.5/s")
    # The state is in it all, once the connection was lost and has come back.
    assert page.locator("#connection").is_hidden()


def test_a_run_is_started_after_its_estimate(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/")
    page.get_by_role("link", name="New run").last.click()
    expect(page.locator("#endpoint option")).to_have_count(1)
    assert page.locator("#data").input_value() == "mini"
    assert page.locator("#start").is_hidden()
    page.get_by_role("spinbutton", name="Rows").fill("12")
    page.locator("#model").fill("m-2")
    page.get_by_role("textbox", name="Name").fill("from the page")
    page.get_by_role("button", name="Estimate cost").click()
    expect(page.locator("#estimate-figures")).to_contain_text("$1.50")
    expect(page.get_by_role("button", name="Start this run")).to_be_focused()
    # What was estimated is what is started: a change asks for another estimate.
    page.get_by_role("spinbutton", name="Rows").fill("13")
    assert page.locator("#start").is_hidden()
    page.get_by_text("Further settings").click()
    page.locator("#further").fill("[1]")
    page.get_by_role("button", name="Estimate cost").click()
    expect(page.locator("#say")).to_have_text(re.compile("no JSON object"))
    page.locator("#further").fill('{"params": {"effort": "low"}}')
    page.get_by_role("button", name="Estimate cost").click()
    page.get_by_role("button", name="Start this run").click()
    page.wait_for_url(re.compile("run\\?name=from%20the%20page"))
    settings = site.desk.job("from the page").settings
    assert settings == {
        "benchmark": "mmbu-public",
        "data": "mini",
        "limit": 13,
        "name": "from the page",
        "endpoint": "here",
        "model": "m-2",
        "judge": {"endpoint": "here"},
        "params": {"effort": "low"},
    }


def test_what_is_refused_is_said(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/")
    expect(card(page, "held")).to_be_visible()
    site.do(lambda: site.desk.all.__setitem__(2, site.desk.change("held", JobState.CANCELLED)))
    expect(card(page, "held").get_by_role("button")).to_have_count(1)
    page = chromium.open(f"{site.url}/new")
    page.locator("#model").fill("boom")
    page.locator("#ask").click()
    expect(page.locator("#say.bad")).to_have_text(re.compile("^Something went wrong here"))
    chromium.complaints.clear()  # the browser's own word of the 500


def test_chosen_runs_are_compared(chromium: Chromium, site: Site) -> None:
    page = chromium.open(f"{site.url}/")
    card(page, "over").get_by_role("checkbox").check()
    assert page.get_by_role("button", name="Compare the chosen runs").is_disabled()
    card(page, "held").get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare the chosen runs").click()
    page.wait_for_url(re.compile(r"api/v1/compare\?run=over&run=held&format=html"))
    page.wait_for_load_state()
    chromium.complaints.clear()  # the store has neither


def test_the_connection_is_lost_and_found(chromium: Chromium, tmp_path: Path) -> None:
    with served(tmp_path / "store.sqlite", desk=busy_desk()) as site:
        page = chromium.open(f"{site.url}/")
        expect(card(page, BUSY)).to_be_visible()
    expect(page.locator("#connection")).to_contain_text("The connection is lost")
    chromium.complaints.clear()


def test_the_door_asks_for_the_token(chromium: Chromium, tmp_path: Path) -> None:
    guard = Guard(token=Token(TOKEN))
    with serving(chromium, tmp_path, desk=busy_desk(), guard=guard) as site:
        page = chromium.open(f"{site.url}/run?name={BUSY}", width=PHONE)
        chromium.shoot(page, "service-login-390-light")
        assert BUSY not in page.content()
        page.get_by_label("Token of the service").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        page.get_by_label("Token of the service").fill(TOKEN)
        page.keyboard.press("Enter")
        expect(card(page, BUSY)).to_be_visible()
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token of the service")).to_be_visible()
        chromium.complaints.clear()  # the browser's own word of the 401


def test_hostile_texts_break_nothing(chromium: Chromium, tmp_path: Path) -> None:
    desk = FakeDesk()
    for name in (RUN, IMAGE, "w" * 400):
        desk.add(name, JobState.RUNNING, settings={"model": IMAGE}, message=EVERYTHING)
        desk.move(name, 5, waiting=EVERYTHING, errors=dict.fromkeys(TEXTS.values(), 3))
        for text in TEXTS.values():
            desk.log(name, text)
    with serving(chromium, tmp_path, desk=desk) as site:
        for width in (DESKTOP, PHONE):
            page = chromium.open(f"{site.url}/", width=width)
            expect(page.locator("ul.runs > li")).to_have_count(3)
            assert fits(page)
            links = page.locator("ul.runs h2 a").evaluate_all("all => all.map(one => one.href)")
            for link in (f"{site.url}/", *links):
                page.goto(link)
                expect(page.locator(".badge").first).to_be_visible()
                if link in links:
                    expect(page.locator("#log")).to_contain_text(MARK)
                assert fits(page), link
                assert page.evaluate(f"window.{MARK}") is None
                assert steering(page.locator("body").inner_text()) == []


@pytest.mark.parametrize("path", PAGES)
def test_every_control_has_a_name_and_is_reached(chromium: Chromium, site: Site, path: str) -> None:
    page = chromium.open(f"{site.url}/{path}", width=DESKTOP)
    page.wait_for_timeout(300)
    nameless = page.evaluate(
        """[...document.querySelectorAll('a[href], button, input, select, textarea, [role=region], progress')]
            .filter(one => one.checkVisibility())
            .filter(one => !(one.getAttribute('aria-label') || one.textContent.trim()
                || [...(one.labels ?? [])].some(label => label.textContent.trim())))
            .map(one => one.outerHTML.slice(0, 150))"""
    )
    assert nameless == []
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert page.locator("[aria-live=polite]").count() == 1
    wanted = page.evaluate(
        """[...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex="0"]')]
            .filter(one => one.checkVisibility() && !one.disabled && one.getClientRects().length).length"""
    )
    reached = set()
    for _ in range(wanted + 2):
        page.keyboard.press("Tab")
        seen = page.evaluate(
            """(() => {
                const one = document.activeElement;
                if (!one || one === document.body) return null;
                const ring = getComputedStyle(one);
                one.dataset.reached ??= String(document.querySelectorAll('[data-reached]').length);
                const shown = ring.outlineStyle !== 'none' && ring.outlineWidth !== '0px';
                return [one.dataset.reached, shown, one.outerHTML.slice(0, 100)];
            })()"""
        )
        if seen is not None:
            assert seen[1], f"no focus to be seen at {seen[2]}"
            reached.add(seen[0])
    assert len(reached) >= wanted
