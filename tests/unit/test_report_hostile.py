"""Foreign texts that mean harm are shown as text by every form, and break none."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from mmbu_async import api
from mmbu_async.report import print_row
from mmbu_async.report.plain import csv_cell
from mmbu_async.store.codec import clean
from tests.every_form import OTHER, PRINTED, WRITTEN, Rows, invoked, read_csv, strict_json
from tests.hostile import (
    EVERYTHING,
    LONG,
    LONG_WORD,
    MARK,
    RUN,
    TEXTS,
    broken_tables,
    hostile_rows,
    hostile_run,
    live_markup,
    steering,
)
from tests.stored_run import RunMaker

ALIVE = {"html_block", "html_inline", "link_open", "image"}
"""What a reader of Markdown brings to life."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Two hostile runs over the same rows."""
    from contextlib import ExitStack

    path = tmp_path_factory.mktemp("hostile") / "store.sqlite"
    with ExitStack() as stack:
        make_run = RunMaker(path, stack)
        hostile_run(make_run)
        hostile_run(make_run, name=OTHER, flipped=True)
        yield path


def of_kind(*kinds: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("name", [name for name, form in PRINTED.items() if form.kind in kinds])


@cache
def said(name: str, store: Path) -> str:
    return PRINTED[name].said(RUN, store)


@pytest.mark.parametrize("name", PRINTED)
def test_nothing_printed_steers_a_terminal(store: Path, name: str) -> None:
    text = said(name, store)
    assert steering(text) == []
    assert MARK in text


@of_kind("text")
def test_lines_are_as_long_as_the_terminal_is_wide(store: Path, name: str) -> None:
    # Commands are to be copied: they have no line break inside.
    lines = [line for line in said(name, store).splitlines() if not line.startswith("Next ")]
    assert max(map(len, lines)) <= 100


@of_kind("markdown")
def test_markdown_shows_markup_as_text(store: Path, name: str) -> None:
    text = said(name, store)
    assert broken_tables(text) == []
    assert live_markup(text) == []
    assert {token.type for token in parsed(text)} & ALIVE == set()


@of_kind("html")
def test_a_page_has_no_element_that_a_text_brought(store: Path, name: str) -> None:
    page = said(name, store)
    found = Elements()
    found.feed(page)
    found.close()
    assert found.names & {"img", "iframe", "object", "embed", "base", "i"} == set()
    assert [name for name in found.attributes if name.startswith("on")] == []
    assert [text for text in found.scripts if MARK in text] == []
    assert [address for address in found.addresses if not address.startswith(("data:", "#"))] == []


class Elements(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.addresses += [value or "" for name, value in attrs if name in ("href", "src", "xlink:href")]
        self._in_script = tag == "script"

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script:
            self.scripts.append(data)


@of_kind("json")
def test_json_is_read_back_as_it_was(store: Path, name: str) -> None:
    family = clean(f"{EVERYTHING}family")
    assert any(family in text for text in texts_of(strict_json(said(name, store))))


@pytest.mark.parametrize("row", range(len(hostile_rows())))
def test_a_row_is_shown_in_plain_text(store: Path, row: int) -> None:
    row_id = str(hostile_rows()[row]["id"])
    text = invoked(["show", "--", RUN, row_id], store)
    assert steering(text) == []
    assert MARK in text


def test_a_row_keeps_what_it_shows_whole(store: Path) -> None:
    """A reply is not cut, however long."""
    row_id = next(str(row["id"]) for row in hostile_rows() if row.get("reply") == LONG_WORD)
    shown = api.show(RUN, row_id, store=store)
    console = Console(file=io.StringIO(), width=80)
    print_row(shown.detail, shown.prompts, console)
    assert isinstance(console.file, io.StringIO)
    assert LONG_WORD in console.file.getvalue()


@pytest.mark.parametrize("name", ["jsonl", "parquet"])
def test_exports_hold_the_texts_as_they_are(store: Path, tmp_path: Path, name: str) -> None:
    rows = WRITTEN[name].rows(RUN, store, tmp_path)
    for made, row in zip(hostile_rows(), rows, strict=True):
        for column, source in (("row_id", "id"), ("question", "question"), ("reply", "reply")):
            assert row[column] == (clean(made[source]) if source in made else None)
        assert row["options"] == [clean(option) for option in made["options"]]
        assert row["family"] == clean(made["family"])


def test_a_spreadsheet_runs_nothing_of_a_csv(store: Path, tmp_path: Path) -> None:
    rows = WRITTEN["csv"].rows(RUN, store, tmp_path)
    cells_are_harmless(rows)
    assert [row["row_id"] for row in rows] == [csv_cell(clean(row["id"])) for row in hostile_rows()]
    columns = {csv_cell(f"data.{clean(name)}") for row in hostile_rows() for name in row["fields"]}
    assert columns <= set(rows[0])
    assert csv_cell(LONG) in {row["reply"] for row in rows}


def test_a_spreadsheet_runs_nothing_of_the_flips(store: Path, tmp_path: Path) -> None:
    path = tmp_path / "flips.csv"
    invoked(["compare", RUN, OTHER, "--flips", str(path)], store)
    cells_are_harmless(read_csv(path))


def test_the_long_form_holds_the_texts_as_they_are(store: Path, tmp_path: Path) -> None:
    rows = WRITTEN["long"].rows(RUN, store, tmp_path)
    assert {row["run"] for row in rows} == {clean(RUN)}
    judges = [clean(f"{name} {EVERYTHING}") for name in ("judge", "second")]
    assert list(dict.fromkeys(row["judge"] for row in rows)) == judges
    whole = [row for row in rows if row["attribute"] == "(all)" and row["judge"] == judges[0]]
    assert [row["row_id"] for row in whole] == [clean(row["id"]) for row in hostile_rows()]
    clusters = {row["row_id"]: row["cluster"] for row in whole}
    assert all(clusters[clean(f"{text}{name}")] == clean(text) for name, text in TEXTS.items())
    attributes = {clean(name) for row in hostile_rows() for name in row["strata"]}
    assert {row["attribute"] for row in rows} == {"(all)"} | attributes
    topics = {row["value"] for row in rows if row["attribute"] == "task"}
    assert topics == {"plain", *map(clean, TEXTS.values()), clean(EVERYTHING)}


def test_a_submission_is_read_back_as_it_was(store: Path, tmp_path: Path) -> None:
    (answers,) = WRITTEN["submission"].rows(RUN, store, tmp_path)
    answered = [row for row in hostile_rows() if "reply" in row]
    assert answers == {clean(row["id"]): clean(row["committed"]) for row in answered}


def cells_are_harmless(rows: Rows) -> None:
    assert rows
    for row in rows:
        for name, cell in row.items():
            assert csv_cell(name) == name
            assert csv_cell(cell) == cell, "a formula, or a NUL"


def parsed(markdown: str) -> list[Token]:
    """As a reader of GitHub's Markdown that allows HTML would have it."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(markdown)
    return [inner for token in tokens for inner in (token, *(token.children or ()))]


def texts_of(value: Any) -> set[str]:
    """Every text in a JSON value, names included."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        return set(value).union(*map(texts_of, value.values()))
    return set().union(*map(texts_of, value)) if isinstance(value, list) else set()
