"""Means by family, and how many prompts to a judge are the same."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from random import Random

import pytest

from mmbu_async.model import Usage
from mmbu_async.pipeline.learning import Usual, answered_alike, distinct_prompts
from mmbu_async.store import JudgedPrompt, UsageRecord
from tests.stored_run import RunMaker


def records(family: str, count: int, given: int, made: int, cached: int = 0) -> list[UsageRecord]:
    usage = Usage(input_tokens=given, output_tokens=made, cached_tokens=cached)
    return [UsageRecord(family=family, usage=usage)] * count


def test_means_are_of_the_family_or_of_all() -> None:
    usual = Usual.of(records("a", 8, 100, 10) + records("b", 2, 600, 60, cached=100))
    assert usual is not None
    assert usual.replies == 10
    assert usual.expect("a") == (100, 10)
    assert usual.expect("b") == (200, 20), "two replies say too little of their family"
    assert usual.expect("never seen") == (200, 20)
    assert usual.cached == pytest.approx(200 / 2000)


def test_nine_replies_teach_nothing() -> None:
    assert Usual.of(records("a", 9, 100, 10)) is None


def test_alike_is_counted_by_pairs() -> None:
    x, other, wrong = (JudgedPrompt(sha=sha, correct=sha != b"z") for sha in (b"x", b"y", b"z"))
    assert answered_alike([[x, x, other], [x]]) == (1 + 2) / (3 + 2)
    assert answered_alike([[x], [wrong]]) == 1 / 4, "no pair of one question: as often as both are right"
    assert answered_alike([[wrong] * 100]) == pytest.approx(1, abs=0.01), "pairs that are seen decide"
    assert answered_alike([]) == 0


def test_distinct_prompts_of_answers_that_are_drawn() -> None:
    """Against drawing: four equally likely answers, groups of two sizes."""
    random = Random(0)
    drawn = [sum(len({random.randrange(4) for _ in range(size)}) for size in (3, 9)) for _ in range(20_000)]
    assert distinct_prompts((3, 9), 1 / 4) == pytest.approx(sum(drawn) / len(drawn), rel=0.01)
    assert distinct_prompts((3, 9), 0) == 12
    assert distinct_prompts((3, 9), 1) == 2


def test_replies_are_read_from_all_over_a_run(tmp_path: Path) -> None:
    rows = [
        {
            "id": f"r{n}",
            "family": "first" if n < 150 else "second",
            "reply": "a",
            "usage": Usage(input_tokens=n),
        }
        for n in range(300)
    ]
    with ExitStack() as stack:
        store, run = RunMaker(tmp_path / "s.sqlite", stack)(rows, scored=False)
        found = store.usages(run.id, None, 20)
        assert 10 <= len(found) <= 20
        assert {record.family for record in found} == {"first", "second"}
        assert len(store.usages(run.id, None, 500)) == 300
