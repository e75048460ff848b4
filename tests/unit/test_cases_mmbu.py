"""The golden cases of the MMBU protocol, one test each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.judging import mmbu
from mmbu_async.model import Completion, Finish, JudgeItem, ScoreItem
from mmbu_async.scoring.answers import committed_answer
from mmbu_async.scoring.boxes import as_floats, read_boxes
from mmbu_async.scoring.options import read_options, without_letters
from mmbu_async.tasks.mmbu_public import MmbuPublic

CASES = Path(__file__).parents[1] / "data" / "cases"


def cases(name: str, label: str = "name") -> list[Any]:
    found = json.loads((CASES / f"mmbu_{name}.json").read_text(encoding="utf-8"))
    return [pytest.param(case, id=str(case.get(label, number))) for number, case in enumerate(found)]


def test_no_case_file_is_left_out() -> None:
    assert {path.name for path in CASES.glob("mmbu_*.json")} == {
        f"mmbu_{name}.json" for name in ("answers", "boxes", "detection", "label_sets", "verdicts")
    }


@pytest.mark.parametrize("case", cases("answers"))
def test_answer(case: dict[str, Any]) -> None:
    answer = committed_answer(case["reply"])
    assert (answer.text, answer.untagged) == (case["answer"], not case["tagged"])


@pytest.mark.parametrize("case", cases("boxes", "id"))
def test_boxes(case: dict[str, Any]) -> None:
    answer = committed_answer(case["reply"])
    reading = read_boxes(answer.text, tagged=not answer.untagged)
    assert as_floats(reading.boxes) == [tuple(box) for box in case["boxes"]], case["why"]
    assert bool(reading.reason) == (not case["boxes"])


@pytest.mark.parametrize("case", cases("detection"))
def test_detection(case: dict[str, Any]) -> None:
    benchmark = MmbuPublic.with_prompts()
    row = {
        "unique_id": "a",
        "question": "Where?",
        "task": "object detection | x",
        "answer": case["answer"],
        "options": [],
    }
    sample = benchmark.sample(row, 0)
    answer = benchmark.read(sample, Completion(text=case["reply"], finish=Finish.STOP))
    (score,) = benchmark.score([ScoreItem(sample=sample, answer=answer)])
    assert score.correct is case["correct"]
    assert score.detail["max_iou"] == pytest.approx(case["max_iou"], abs=1e-12)
    assert score.detail["predicted"] == case["predicted"]


@pytest.mark.parametrize("case", cases("verdicts"))
def test_verdict(case: dict[str, Any]) -> None:
    expected = None if case["verdict"] is None else bool(case["verdict"])
    assert mmbu.read_verdict(case["line"]) is expected


@pytest.mark.parametrize("case", cases("label_sets"))
def test_label_set(case: dict[str, Any]) -> None:
    labels = without_letters(read_options(case["options"]))
    item = JudgeItem(question="q", labels=labels, true_answer="t", model_answer="m")
    assert f"for this same question:\n{case['label_set']}\n\nOutput rules" in mmbu.fill(item).text
