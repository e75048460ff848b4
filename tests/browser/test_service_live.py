"""A run from its form to its report, by somebody who has only the page: real scheduler, real runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mmbu_async.simulator.config import Latency
from tests.browser.conftest import PHONE, Chromium
from tests.service_kit import api
from tests.whole_service import whole_service


def expect(locator: Any) -> Any:
    from playwright.sync_api import expect as expecting

    return expecting(locator)


def test_a_run_from_its_form_to_its_report(chromium: Chromium, tmp_path: Path) -> None:
    with whole_service(tmp_path, latency=Latency.parse("0.15")) as service:
        page = chromium.open(f"{service.url}/new")
        page.locator("#model").fill("m-1")
        page.locator("#judge-model").fill("j")
        page.locator("#name").fill("from the page")
        page.locator("#concurrency").fill("2")
        page.get_by_text("Further settings").click()
        prices = '{"preflight": false, "input_price": 1, "output_price": 2, "judge": {"input_price": 1, '
        page.locator("#further").fill(prices + '"output_price": 2}}')
        page.get_by_role("button", name="Estimate cost").click()
        expect(page.locator("#estimate-figures")).to_contain_text(re.compile(r"33 of 33"))
        assert "$" in page.locator("#estimate-figures").inner_text()
        page.get_by_role("button", name="Start this run").click()
        page.wait_for_url(re.compile("run\\?name="))
        # It is followed without a press.
        expect(page.locator("#state .badge")).to_have_text("running")
        expect(page.locator("#bar-label")).to_have_text(re.compile(r"^([2-9]|[12]\d) of 33 rows"))
        page.get_by_role("button", name="Pause").click()
        expect(page.locator("#state .badge")).to_have_text("paused")
        service.wait(lambda: service.get(api("from the page")).json["progress"]["in_flight"] == 0)
        expect(page.locator("#figures")).to_contain_text(re.compile("Calls under way\\s*0"))
        chromium.shoot(page, "service-live-paused-1280")
        page.get_by_role("button", name="Resume").click()
        expect(page.locator("#state .badge")).to_have_text("running")
        expect(page.locator("#state .badge")).to_have_text("done", timeout=40_000)
        expect(page.locator("#bar-label")).to_have_text("33 of 33 rows")
        assert "L" in page.locator("#charts path.line").first.get_attribute("d")
        assert "paused" in page.locator("#log").inner_text()
        chromium.shoot(page, "service-live-done-1280")
        page.get_by_role("link", name="Report").click()
        expect(page.locator("h1")).to_contain_text("mmbu-public")
        expect(page.locator("svg").first).to_be_visible()
        page.go_back()
        page.get_by_role("link", name="Rows").click()
        expect(page.locator("ol.rows > li")).to_have_count(33)
        page.locator("a.open").first.click()
        expect(page.locator(".picture img").first).to_be_visible()
        with page.expect_download() as got:
            page.goto(f"{service.url}/run?name=from the page")
            page.get_by_role("link", name="Export CSV").click()
        assert got.value.suggested_filename == "from_the_page-rows.csv"
        phone = chromium.open(f"{service.url}/", width=PHONE)
        expect(phone.locator("ul.runs > li")).to_have_count(1)
        phone.get_by_text("All runs of the store").tap()
        expect(phone.locator("#stored tbody tr")).to_have_count(1)
        chromium.shoot(phone, "service-live-list-390")
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
        chromium.leave()
