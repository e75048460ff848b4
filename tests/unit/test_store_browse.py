"""Filters, pages and neighbours of rows, compared with what a loop over all rows finds."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from mmbu_async.errors import StoreError
from mmbu_async.store import Browser, ListedRow, RowFilter, RowRecord, RunRecord, Store
from tests.stored_run import MakeRun, Row

WORDS = ("Müller", "100 % sure", "under_score", "back\\slash", "[set]*?", "nucleus")


def a_row(n: int, outcome: str) -> dict[str, Any]:
    """A row of many kinds, told by its number."""
    kinds: dict[str, dict[str, Any]] = {
        "right": {"reply": f"It is {WORDS[n % 6]}.", "committed": "it", "correct": True},
        "wrong": {"reply": f"Maybe {WORDS[n % 6]}?", "committed": "that", "correct": False},
        "unjudged": {"reply": "hm", "committed": "hm", "judged": None},
        "ungraded": {"reply": "x", "ungraded": True},
        "failed": {"failures": ["timeout", "bad_request"]},
        "pending": {},
    }
    return {
        "id": f"row-{n:03}",
        "question": f"What is number {n}?",
        "family": ("counting", "classification")[n % 2],
        "strata": {"task": ("a", f"t{n % 3}"), "stain": ("H&E",) if n % 4 else (), 'o"dd': ("<3>", "*")},
        "how": ("tag", "untagged")[n % 3 == 0],
        "finish": ("stop", "length", "refusal")[n % 3],
        **kinds[outcome],
    }


OUTCOMES = ("right", "wrong", "wrong", "unjudged", "ungraded", "failed", "pending", "right")


@pytest.fixture
def made(make_run: MakeRun) -> tuple[Store, RunRecord]:
    return make_run([a_row(n, OUTCOMES[n % 8]) for n in range(48)])


@pytest.fixture
def browser(made: tuple[Store, RunRecord]) -> Iterator[Browser]:
    store, run = made
    with closing(Browser.open(store.path, run)) as browser:
        yield browser


def outcome_of(row: RowRecord) -> str:
    if row.score is not None and row.score.correct is not None:
        return "right" if row.score.correct else "wrong"
    return row.status.value


def holds(row: RowRecord, wanted: RowFilter) -> bool:
    """The filter in plain Python."""
    reply = row.completion.text if row.completion else ""
    texts = (row.sample.question, row.sample.answer, row.sample.id, reply)
    return (
        any(wanted.text.lower() in text.lower() for text in texts)
        and wanted.family in (None, row.family)
        and all(value in row.sample.strata.get(name, ()) for name, value in wanted.strata)
        and wanted.outcome in (None, outcome_of(row))
        and wanted.how in (None, row.answer.how if row.answer else "")
        and wanted.finish in (None, row.completion.finish.value if row.completion else "")
    )


FILTERS = [
    RowFilter(),
    *(RowFilter(outcome=outcome) for outcome in sorted(set(OUTCOMES))),
    RowFilter(family="counting"),
    RowFilter(family="no such family"),
    RowFilter(how="untagged", outcome="wrong"),
    RowFilter(finish="length"),
    RowFilter(strata=(("task", "t1"),)),
    RowFilter(strata=(("task", "t1"), ("stain", "H&E")), family="counting"),
    RowFilter(strata=(("stain", "H&E"), ("task", "a"), ('o"dd', "*"))),
    RowFilter(strata=(("task", "H&E"),)),
    RowFilter(strata=(('o"dd', "<3>"),)),
    *(RowFilter(text=word) for word in (*WORDS, "NUCLEUS", "number 1", "row-04", "MÜLLER", "%", "_", "\\")),
    RowFilter(text="nucleus", outcome="wrong", family="classification"),
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_a_filter_leaves_what_a_loop_leaves(
    made: tuple[Store, RunRecord], browser: Browser, wanted: RowFilter
) -> None:
    store, run = made
    rows = [row for row in store.rows(run.id) if holds(row, wanted)]
    if wanted.text == "MÜLLER":
        # Known and said: only A-Z are known in both cases.
        rows = []
    assert [row.key for row in browser.page(wanted, 100)] == [row.key for row in rows]
    assert browser.tally(wanted) == Counter((outcome_of(row), None) for row in rows)


def test_pages_and_neighbours_are_those_of_the_filter(browser: Browser) -> None:
    wanted = RowFilter(family="counting")
    every = [row.key for row in browser.page(wanted, 100)]
    forth: list[int] = []
    while page := browser.page(wanted, 7, after=forth[-1] if forth else 0):
        forth += [row.key for row in page]
    assert forth == every
    back: list[int] = []
    while page := browser.page(wanted, 7, before=back[0] if back else every[-1] + 1):
        back = [row.key for row in page] + back
    assert back == every
    places = [browser.place(wanted, key) for key in every]
    assert [place.before for place in places] == list(range(len(every)))
    assert [place.next for place in places] == [*every[1:], None]
    assert [place.previous for place in places] == [None, *every[:-1]]
    assert all(place.inside for place in places)
    outside = browser.place(wanted, every[0] + 1)
    assert (outside.inside, outside.previous, outside.next) == (False, every[0], every[1])


def test_choices_count_the_rows_of_the_run(browser: Browser) -> None:
    choices = browser.choices
    assert choices.families == {"classification": 24, "counting": 24}
    assert choices.strata["task"] == {"a": 48, "t0": 16, "t1": 16, "t2": 16}
    assert choices.strata["stain"] == {"H&E": 36}
    assert sum(choices.finishes.values()) == sum(choices.hows.values()) == 36


def test_a_listed_row_says_what_the_row_says(made: tuple[Store, RunRecord], browser: Browser) -> None:
    store, run = made
    for listed, row in zip(browser.page(RowFilter(), 100), store.rows(run.id), strict=True):
        assert listed == ListedRow(
            key=row.key,
            position=row.sample.position,
            row_id=row.sample.id,
            family=row.family,
            question=row.sample.question,
            truth=row.sample.answer,
            images=1,
            outcome=outcome_of(row),
            how=row.answer.how if row.answer else None,
            finish=row.completion.finish.value if row.completion else None,
            disputed=False,
            flip=None,
            answer=row.answer.text if row.answer else None,
            beside_outcome=None,
            beside_answer=None,
        )
        detail = browser.row(listed.key)
        assert detail is not None
        assert detail.record == row
    assert browser.row(10_000) is None


def test_texts_behind_a_nul_are_found(make_run: MakeRun) -> None:
    rows: list[Row] = [
        {"id": "reply", "reply": "a\0Behind", "correct": True},
        {"id": "question", "reply": "b", "question": "q\0 behind", "correct": True},
        {"id": "i\0d behind", "reply": "c", "correct": False},
        {"id": "truth", "answer": "x\0behind", "failures": ["timeout"]},
        {"id": "none", "reply": "a\0 b", "correct": True},
    ]
    store, run = make_run(rows)
    with closing(Browser.open(store.path, run)) as browser:
        found = [row.row_id for row in browser.page(RowFilter(text="behind"), 10)]
        assert found == ["reply", "question", "i\0d behind", "truth"]
        wrong = browser.page(RowFilter(text="behind", outcome="wrong"), 10)
        assert [row.row_id for row in wrong] == ["i\0d behind"]


FLIPS = {"gained": [1], "lost": [2], "both right": [0], "both wrong": [3], "flipped": [1, 2]}


@pytest.mark.parametrize("other_data", [False, True])
def test_flips_are_those_between_the_two_runs(make_run: MakeRun, other_data: bool) -> None:
    """Of rows that are the same by their id, be the dataset the same or another."""

    def rows(*outcomes: str, more: str = "") -> list[Row]:
        return [
            {**a_row(n, outcome), "question": f"Which?{more}", "committed": f"{outcome}{more}"}
            for n, outcome in enumerate(outcomes)
        ]

    store, first = make_run(rows("right", "wrong", "right", "wrong", "right", "pending"), name="one")
    more = " other" if other_data else ""
    others = rows("right", "right", "wrong", "wrong", "failed", "right", more=more)
    _, second = make_run(others[: 5 if other_data else 6], name="two")
    with closing(Browser.open(store.path, first, second)) as browser:
        every = browser.page(RowFilter(), 10)
        assert {
            flip: [row.position for row in browser.page(RowFilter(flip=flip), 10)] for flip in FLIPS
        } == FLIPS
        assert [row.beside_outcome for row in every] == [
            *("right", "right", "wrong", "wrong", "failed"),
            None if other_data else "right",
        ]
        assert every[1].beside_answer == f"right{more}"
        assert browser.tally(RowFilter(outcome="right")) == {
            ("right", "both right"): 1,
            ("right", "lost"): 1,
            ("right", None): 1,
        }
        beside = browser.beside_row(every[1].key)
        assert beside is not None
        assert beside.record.answer is not None
        assert beside.record.answer.text == f"right{more}"
        assert (browser.beside_row(every[5].key) is None) == other_data


def test_judges_that_differ_make_a_row_disputed(make_run: MakeRun) -> None:
    judged: tuple[Row, ...] = tuple(
        {"reply": "x", "judged": verdict, "id": f"r{n}"}
        for n, verdict in enumerate((True, False, None, True))
    )
    store, run = make_run(judged)
    other = store.judge("other", {"model": "other"}, now=1.0)
    keys = [row.key for row in store.rows(run.id)]
    with closing(sqlite3.connect(store.path, isolation_level=None)) as connection:
        for key, correct in zip(keys, (1, 1, 0, None), strict=True):
            connection.execute(
                "INSERT INTO verdict VALUES (?, ?, ?, ?, 'reply', x'AB', 1)", (run.id, key, other.id, correct)
            )
    with closing(Browser.open(store.path, run)) as browser:
        assert [row.row_id for row in browser.page(RowFilter(disputed=True), 10)] == ["r1"]
        assert browser.choices.disputed == 1
        official, late = browser.verdicts(run, keys[1])
        assert (official.judge, official.correct, official.shared) == ("claude-sonnet-5", False, False)
        assert len(official.prompt_sha256) == 64
        assert (late.judge, late.correct, late.prompt_sha256, late.shared) == ("other", True, "ab", True)
        assert late.identity == {"model": "other"}


def test_it_knows_when_it_is_behind(made: tuple[Store, RunRecord], browser: Browser) -> None:
    store, run = made
    assert not browser.behind
    store.set_run_judge(run.id, None)
    assert browser.behind
    with closing(Browser.open(store.path, run, earlier=browser)) as newer:
        assert not newer.behind
        assert newer.choices == browser.choices


def test_a_run_that_grew_is_read_anew(make_run: MakeRun) -> None:
    store, run = make_run([a_row(n, "pending") for n in range(6)], limit=3)
    with closing(Browser.open(store.path, run)) as small:
        assert len(small.page(RowFilter(), 10)) == 3
        store.select(run.id, None, None)
        with closing(Browser.open(store.path, run, earlier=small)) as grown:
            assert len(grown.page(RowFilter(strata=(("task", "a"),)), 10)) == 6


def test_many_filters_are_forgotten_and_made_again(browser: Browser) -> None:
    wanted = [RowFilter(text=f"number {n}") for n in range(30)]
    first = [browser.tally(each).total() for each in wanted]
    assert [browser.tally(each).total() for each in wanted] == first
    assert browser.tally(RowFilter()).total() == 48


def test_nothing_is_written_and_no_lock_is_held(made: tuple[Store, RunRecord], browser: Browser) -> None:
    store, _ = made
    before = store.path.read_bytes()
    list(itertools.chain(browser.page(RowFilter(text="nucleus"), 5), browser.tally(RowFilter())))
    assert store.path.read_bytes() == before
    with closing(sqlite3.connect(store.path, timeout=0, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("UPDATE run SET host = 'elsewhere'")
        assert browser.page(RowFilter(outcome="right"), 1)
        writer.execute("COMMIT")
        # Nor does an idle browser keep the log from being emptied.
        assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def test_an_empty_run_has_empty_pages(make_run: MakeRun) -> None:
    store, run = make_run([a_row(0, "pending")], limit=0)
    with closing(Browser.open(store.path, run)) as browser:
        assert browser.page(RowFilter(), 10) == []
        assert browser.choices.strata == {}


def test_a_store_that_is_gone_is_named(made: tuple[Store, RunRecord], tmp_path: Any) -> None:
    with pytest.raises(StoreError, match=r"nowhere\.sqlite"):
        Browser.open(tmp_path / "nowhere.sqlite", made[1])
