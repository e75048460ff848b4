"""The suite in short: some sessions of two seeds, and its own teeth. `python -m tests.endurance` has more."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mmbu_async.simulator import Fault, FaultRule
from tests.endurance.figures import BEGIN, END, PAGE, REPOSITORY, section
from tests.endurance.ledger import Books, Call, Terms
from tests.endurance.plan import EMPTY_IS_A_REPLY, Blow, draw
from tests.endurance.rounds import Rounds
from tests.endurance.seed import blows_of
from tests.simulated import BASES

if sys.platform != "linux":
    pytest.skip("stops, limits and clocks of other processes are Linux's", allow_module_level=True)

SEEDS = (134, 346)
"""Their first sessions have kills, a full disk, stops, jumps of the clock, restarts and more."""


def test_seeds_break_no_invariant(tmp_path: Path) -> None:
    rounds = Rounds(out=tmp_path / "figures.json", folder=tmp_path, options=("--episodes", "2"))
    assert rounds.play(SEEDS, jobs=2) == 0
    figures = rounds.summary()
    assert figures["lost_rows"] == 0
    assert figures["kills"] >= 1
    assert len(figures["blows"]) >= 3
    assert figures["requests"] > figures["rows"] > 100
    # What is finished is not played again.
    again = Rounds(out=tmp_path / "figures.json", folder=tmp_path / "nowhere")
    assert again.play(SEEDS, jobs=1) == 0
    assert again.summary()["per_seed"] == figures["per_seed"]


TEETH = {
    "": "1 seeds, 0 with a broken invariant",
    "early-ack": "whole replies are lost, more than 2 slots",
    "no-resume-filter": "calls of a resume that had nothing left to do",
}


def test_teeth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A checkpoint that is acknowledged too early, or a resume that forgets, does not go unnoticed; the same
    nights without the defect are quiet."""

    def play(mutation: str) -> int:
        options = ("--plain", *(("--mutation", mutation) if mutation else ()))
        return Rounds(out=None, folder=tmp_path / f"with {mutation}", options=options).play([1], jobs=1)

    with ThreadPoolExecutor(2) as pool:
        found = dict(zip(TEETH, pool.map(play, TEETH), strict=True))
    assert found == {"": 0, "early-ack": 1, "no-resume-filter": 1}
    told = capsys.readouterr().out
    for mutation, words in TEETH.items():
        assert words in told
        assert (tmp_path / f"with {mutation}" / "seed-1" / "kept").exists() == bool(mutation)
    assert told.count("again: ") == 2


def test_a_seed_is_always_the_same_night_and_many_have_everything() -> None:
    plans = [draw(seed) for seed in range(200)]
    assert plans == [draw(seed) for seed in range(200)]
    assert set(blows_of(plans)) == {blow.value for blow in Blow}
    rules = [FaultRule.parse(rule) for plan in plans for one in plan.episodes for rule in one.faults]
    met = {rule.fault for rule in rules} | {fault for plan in plans for fault in plan.marked.values()}
    assert met == set(Fault)
    streamed = {(kind, stream) for kind in BASES for stream in (False, True)}
    assert {(plan.endpoint, plan.stream) for plan in plans} == streamed
    assert {(plan.judge_endpoint, plan.judge_stream) for plan in plans} == streamed


# ---------------------------------------------------------------- the books

RECORD = {
    "role": "model",
    "kind": "openai",
    "request_id": "req-1",
    "status": 200,
    "fault": "",
    "aborted": False,
    "shutdown": False,
    "charged": True,
    "input_tokens": 100,
    "output_tokens": 10,
}
CALL = Call(
    id=1,
    judged=False,
    sample_id=1,
    ok=True,
    kind="stop",
    status=None,
    request_id="req-1",
    input_tokens=100,
    output_tokens=10,
    usage_reported=True,
    cost_usd=0.13,
)
GIVEN_UP = Call(
    id=2,
    judged=False,
    sample_id=1,
    ok=False,
    kind="timeout",
    status=None,
    request_id="",
    input_tokens=None,
    output_tokens=None,
    usage_reported=False,
    cost_usd=None,
)


def audit(
    calls: list[Call], log: list[dict[str, object]], *, orderly: bool = True, frozen: bool = False
) -> Books:
    books = Books()
    terms = Terms(orderly=orderly, server_gone=False, concurrency=2, judge_concurrency=2, frozen=frozen)
    books.close("s", calls, log, terms)
    return books


def test_books_that_agree() -> None:
    books = audit([CALL, GIVEN_UP], [RECORD, RECORD | {"request_id": "req-2", "aborted": True}])
    assert books.broken == []
    assert (books.requests, books.unknown_cost, books.usd_matched) == (2, 1, 0.13)


def test_a_reply_that_was_given_up_is_a_repeated_call_and_no_loss() -> None:
    books = audit([CALL, GIVEN_UP], [RECORD, RECORD | {"request_id": "req-2"}])
    assert (books.broken, books.unread, books.lost) == ([], 1, 0)


@pytest.mark.parametrize("orderly", [True, False])
def test_replies_that_a_kill_took_are_as_many_as_slots_at_most(orderly: bool) -> None:
    log = [RECORD | {"request_id": f"req-{number}"} for number in range(4)]
    assert audit([], log[:2], orderly=orderly).broken == [] or orderly
    assert audit([], log[:3], orderly=orderly).broken


def test_replies_that_a_freeze_made_late_are_as_many_as_rows_in_hand_at_most() -> None:
    log = [RECORD | {"request_id": f"req-{number}"} for number in range(13)]
    assert audit([], log[:12], orderly=False, frozen=True).broken == []
    assert audit([], log[:12], orderly=False).broken
    assert audit([], log, orderly=False, frozen=True).broken


@pytest.mark.parametrize(
    ("call", "record"),
    [
        (CALL, RECORD | {"request_id": "req-other"}),
        (CALL, RECORD | {"output_tokens": 11}),
        (CALL, RECORD | {"fault": Fault.CUT_MID_BODY.value}),
        (GIVEN_UP, RECORD | {"role": "judge"}),
    ],
)
def test_books_that_do_not_agree(call: Call, record: dict[str, object]) -> None:
    assert audit([call], [record]).broken


def test_an_empty_message_of_anthropic_is_a_reply() -> None:
    record = RECORD | {"fault": Fault.EMPTY_CHOICES.value}
    assert audit([CALL], [record | {"kind": EMPTY_IS_A_REPLY}]).broken == []
    assert audit([CALL], [record]).broken


# ---------------------------------------------------------------- the page


def test_the_page_shows_the_committed_figures_and_names_tests_that_exist() -> None:
    page = PAGE.read_text("utf-8")
    assert f"{BEGIN}\n{section()}\n{END}" in page, "python -m tests.endurance.figures brings it up to date"
    file = None
    named = re.findall(r"`([\w/]+\.py)?(?:::(\w+))?`", page)
    assert len(named) > 30
    for path, test in named:
        file = (
            REPOSITORY / ("" if path.startswith(("benchmarks/", "fuzz/")) else "tests") / path
            if path
            else file
        )
        assert file is not None
        assert file.exists(), path
        assert not test or f"def {test}(" in file.read_text("utf-8"), test


def test_figures_of_a_run(tmp_path: Path) -> None:
    figures = json.loads(json.dumps(Rounds(out=None, folder=tmp_path).summary()))
    figures |= {"seeds": 2, "kills": 3, "faults": {"reset": 1200}, "exit_codes": {"130": 1, "-9": 3}}
    (tmp_path / "figures.json").write_text(json.dumps(figures))
    text = section(tmp_path / "figures.json")
    assert "| rows lost | 0 |" in text
    assert "| sessions ended by SIGKILL | 3 |" in text
    assert "| reset | 1,200 |" in text
    assert text.index("| -9 | 3 |") < text.index("| 130 | 1 |")
    assert section(tmp_path / "none.json") == "No long run is committed yet."
