"""Rows whose every text means harm: shown as text, whole, and harmless; and runs at the edges."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from tests.edges import EDGES, edge_run
from tests.hostile import LONG, LONG_WORD, MARK, RUN, TEXTS, hostile_rows, hostile_run, steering
from tests.stored_run import RunMaker
from tests.viewer_kit import Page, fetch, served


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("hostile")
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patch:
        # The run names the hub's data; nothing is fetched.
        patch.setattr("mmbu_async.viewer.pictures.open_data", _no_data)
        make = RunMaker(folder / "store.sqlite", stack)
        store, _ = hostile_run(make)
        hostile_run(make, name="other")
        yield stack.enter_context(served(store.path, RUN, "other"))


def _no_data(*_: object) -> object:
    raise LookupError


def check(page: Page) -> None:
    """Nothing of a text has become a part of the page."""
    assert steering(page.text) == []
    tags = {tag for tag, _ in page.tags}
    assert tags <= KNOWN_TAGS, tags - KNOWN_TAGS
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
        told = [value for name, value in attributes.items() if name in TOLD]
        assert steering("".join(told)) == [], (tag, attributes)
        for name in ("href", "src", "action"):
            assert not urlsplit(attributes.get(name, "")).scheme, tag
    assert [script.get("src", "").partition("?")[0] for script in page.all("script")] == ["static/viewer.js"]


TOLD = {"title", "aria-label", "alt", "label", "placeholder"}
"""Attributes that are shown or read out."""
FORM = ("family", "stratum", "how", "finish", "judges")
KNOWN_TAGS = {
    *("html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "main", "footer"),
    *("h1", "h2", "h3", "p", "div", "span", "bdi", "time", "strong", "ol", "li", "dl", "dt", "dd", "section"),
    *("form", "input", "label", "select", "optgroup", "option", "button", "details", "summary", "img"),
    *("figure", "figcaption", "pre", "table", "thead", "tbody", "tr", "th", "td", "dialog", "kbd"),
    *("svg", "g", "rect", "text", "line", "fieldset", "legend"),
}


def test_a_list_of_hostile_rows_is_harmless(site: str) -> None:
    page = fetch(site).page
    check(page)
    assert len(page.rows) == len(hostile_rows())
    assert page.text.count(MARK) > 100


@pytest.mark.parametrize("number", range(1, len(hostile_rows()) + 1))
def test_a_hostile_row_is_harmless(site: str, number: int) -> None:
    answer = fetch(site, f"row?key={number}")
    assert answer.status == 200
    check(answer.page)
    assert answer.page.text.count(MARK) >= 10


@pytest.mark.parametrize("text", [LONG, LONG_WORD])
def test_a_long_reply_is_there_to_its_end(site: str, text: str) -> None:
    number = next(n for n, row in enumerate(hostile_rows(), start=1) if row.get("reply") == text)
    assert text in fetch(site, f"row?key={number}").page.text


def test_what_would_steer_is_shown_as_marks(site: str) -> None:
    for name, marks in {
        "direction": ("U+202E", "U+2067", "U+200B", "U+2028"),
        "terminal": ("U+001B", "U+0007", "U+009B", "U+0008 ×2"),
        "nul": ("U+0000",),
        "tags": ("U+E0041",),
    }.items():
        page = fetch(site, f"row?key={list(TEXTS).index(name) + 1}").page
        for mark in marks:
            assert mark in page.text
    titles = {mark["title"] for mark in page.all("span", class_="mark")}
    assert "TAG LATIN CAPITAL LETTER A" in titles


def test_hostile_filters_lead_where_they_say(site: str) -> None:
    """Every choice of the form can be made, whatever characters its value has."""
    page = fetch(site).page
    options = [option["value"] for option in page.all("option") if option.get("value")]
    assert len(options) > 50
    for value in options:
        assert any(fetch_rows(site, name, value) for name in FORM), value


def fetch_rows(site: str, name: str, value: str) -> list[str]:
    answer = fetch(site, f"?{urlencode({name: value, 'pictures': '0'})}")
    check(answer.page)
    return answer.page.rows if answer.status == 200 else []


@pytest.mark.parametrize(
    "query", ["%00", "%ff%fe", "%0d%0aX-Injected:%201", "%E2%80%AE", "%25", "_", "'--", '"']
)
def test_odd_searches_are_searches(site: str, query: str) -> None:
    answer = fetch(site, f"?q={query}")
    assert answer.status in (200, 303)
    assert "X-Injected" not in answer.headers
    if answer.status == 200:
        check(answer.page)


def test_a_very_long_address_is_refused_or_answered(site: str) -> None:
    assert fetch(site, f"?q={'x' * 5_000}").status == 200
    assert fetch(site, f"?q={'x' * 500_000}").status == 400
    assert fetch(site).status == 200


@pytest.mark.parametrize("name", sorted(EDGES))
def test_runs_at_the_edges_have_pages(tmp_path: Path, name: str) -> None:
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(
            "mmbu_async.viewer.pictures.open_data", _no_data
        )
        store, run = edge_run(RunMaker(tmp_path / "store.sqlite", stack), name)
        site = stack.enter_context(served(store.path, run.name))
        page = fetch(site).page
        check(page)
        assert len(page.rows) == EDGES[name].selected
        for row in page.rows:
            answer = fetch(site, row)
            assert answer.status == 200
            check(answer.page)
