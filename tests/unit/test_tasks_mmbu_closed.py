"""MMBU's closed format: which rows it takes, what it asks, and candidate boxes in every spelling."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mmbu_async.errors import RowError
from mmbu_async.model import Completion, Finish, RawRow, Sample, Score, ScoreItem
from mmbu_async.scoring.candidates import BOX, read_candidate, right_candidates
from mmbu_async.tasks.choice import OUTSIDE
from mmbu_async.tasks.forms import Form
from mmbu_async.tasks.mmbu_closed import CANDIDATES, MmbuClosed

BOXES = ("[10, 20, 30, 40]", "[15, 20, 30, 40]", "[210.5, 20, 30, 40]")
READINGS: dict[str, tuple[str, str]] = {
    "<answer>B</answer>": ("B", "tag"),
    "<answer>[15, 20, 30, 40]</answer>": ("B", "tag"),
    "B) [15, 20, 30, 40]": ("B", "mark"),
    "B. [15, 20, 30, 40]": ("B", "list"),
    "The box is [15, 20, 30, 40].": ("B", "option text"),
    # Another spelling of the numbers.
    "<answer>[15,20,30,40]</answer>": ("B", BOX),
    "<answer>[15.0, 20.0, 30.0, 40.0]</answer>": ("B", BOX),
    "<answer>(15, 20, 30, 40)</answer>": ("B", "tag"),
    "<answer>15 20 30 40</answer>": ("B", BOX),
    '<answer>{"x": 15, "y": 20, "width": 30, "height": 40}</answer>': ("B", BOX),
    '```json\n{"answer": [15,20,30,40]}\n```': ("B", BOX),
    '{"answer": [15,20,30,40], "why": "[1,2,3,4] is too far up"}': ("B", BOX),
    '{"answer": [[15,20,30,40]]}': ("B", BOX),
    '{"answer": "[210.50,20,30,40]"}': ("C", BOX),
    "So I say [15,20,30,40]": ("B", BOX),
    "<think>[10,20,30,40]?</think>[15,20,30,40]": ("B", BOX),
    # Out of the set, however near, is wrong; so are two, none, and what is ruled out.
    "<answer>[15, 20, 30, 41]</answer>": ("", "tag"),
    "<answer>[10,20,30,40], [15,20,30,40]</answer>": ("", "tag"),
    "<answer>D</answer> [15,20,30,40]": ("", "tag"),
    '{"answer": "D"} or [15,20,30,40]': ("", "field"),
    "<answer></answer> [15,20,30,40]": ("", "tag"),
    "It is not [15,20,30,40]": ("", "none"),
    "Box 2": ("", "none"),
    "": ("", "none"),
}


@pytest.mark.parametrize("reply", READINGS)
def test_a_candidate_may_be_named_by_letter_or_by_its_numbers(reply: str) -> None:
    answer = read_candidate(reply, BOXES)
    assert (answer.text, answer.how) == READINGS[reply]


def test_two_candidates_with_one_box_are_told_apart_by_letter_alone() -> None:
    twins = ("[1, 2, 3, 4]", "[1,2,3,4]", "[5, 6, 7, 8]")
    assert read_candidate("<answer>[1.0,2,3,4]</answer>", twins).text == ""
    assert read_candidate("<answer>B</answer>", twins).text == "B"


@pytest.mark.parametrize(
    ("truth", "options", "right"),
    [
        ("[15, 20, 30, 40]", BOXES, [1]),
        ("[[15.0, 20, 30, 40]]", BOXES, [1]),
        ("[[15, 20, 30, 40], [99, 99, 9, 9]]", BOXES, [1]),  # one of several true boxes
        ("[[15, 20, 30, 40], [10, 20, 30, 40]]", BOXES, [0, 1]),
        ("[15, 20, 30, 41]", BOXES, []),
        ("[[1, 2, 3, 4], [5, 6, 7, 8]]", ("[[5, 6, 7, 8], [1, 2, 3, 4]]", "[1, 2, 3, 4]"), [0]),
        ("[1, 2, 3, 4]", ("none of these", "[1, 2, 3, 4]"), [1]),
    ],
)
def test_the_right_candidate(truth: str, options: tuple[str, ...], right: list[int]) -> None:
    assert right_candidates(truth, options) == right


def detection(**changes: Any) -> RawRow:
    fields = {
        "unique_id": "u",
        "question": "Which box holds the nucleus?",
        "task": "object detection | nuclei",
        "VQA_type": "closed",
        "options": ["A) [10, 20, 30, 40]", "B) [15, 20, 30, 40]", "C) [210.5, 20, 30, 40]"],
        "answer": "[15, 20, 30, 40]",
        **changes,
    }
    return RawRow(position=0, fields=fields, images=(), where="line 1")


def one(raw: RawRow, form: Form | None = None) -> Sample:
    (sample,) = MmbuClosed(form or Form()).samples(raw)
    return sample


FORMS: dict[str, Any] = {
    "texts with letters": ["A) [10, 20, 30, 40]", "B) [15, 20, 30, 40]", "C) [210.5, 20, 30, 40]"],
    "lists": [[10, 20, 30, 40], [15, 20, 30, 40], [210.5, 20, 30, 40]],
    "JSON in a text": "[[10, 20, 30, 40], [15, 20, 30, 40], [210.5, 20, 30, 40]]",
    "a list of texts in a text": str([f"{letter}. {box}" for letter, box in zip("ABC", BOXES, strict=True)]),
    "lines": "\n".join(BOXES),
    "lines with letters": "\n".join(f"{letter}) {box}" for letter, box in zip("ABC", BOXES, strict=True)),
}


@pytest.mark.parametrize("form", FORMS)
def test_candidates_arrive_in_many_forms(form: str) -> None:
    sample = one(detection(options=FORMS[form]))
    assert (sample.route, sample.options, sample.answer) == (CANDIDATES, BOXES, "B")


def test_candidates_that_are_objects() -> None:
    boxes = [{"x": n, "y": 2, "width": 3, "height": 4} for n in (1, 5)]
    sample = one(detection(options=boxes, answer=json.dumps(boxes[1])))
    assert (sample.answer, sample.options) == ("B", tuple(map(json.dumps, boxes)))


@pytest.mark.parametrize("answer", ["B", "b)", " B. "])
def test_a_closed_row_may_name_its_box_by_letter(answer: str) -> None:
    sample = one(detection(answer=answer))
    assert (sample.route, sample.answer) == (CANDIDATES, "B")
    with pytest.raises(RowError, match="holds no box"):
        one(detection(answer=answer, VQA_type="open"))
    with pytest.raises(RowError, match="holds no box"):
        one(detection(answer="F"))


def test_candidates_are_shown_and_the_right_one_is_not_pointed_at() -> None:
    benchmark = MmbuClosed()
    text = benchmark.prompt(one(detection())).text
    assert text.startswith(
        "Which box holds the nucleus?\n\nCandidate boxes, each [x, y, width, height] in pixels:"
    )
    assert "\nA) [10, 20, 30, 40]\nB) [15, 20, 30, 40]\nC) [210.5, 20, 30, 40]\n\n" in text
    assert text.endswith("inside the tags.")
    shuffled = one(detection(), Form(shuffle=5))
    assert shuffled.options["ABC".index(shuffled.answer)] == BOXES[1]
    rotations = MmbuClosed(Form(circular=True)).samples(detection())
    assert [sample.answer for sample in rotations] == ["B", "A", "C"]


@pytest.mark.parametrize(
    "options", [[], None, ["[10, 20, 30, 40]", "[11, 20, 30, 40]"], ["[15, 20, 30, 40]"]]
)
def test_without_a_true_candidate_a_box_is_asked_for(options: Any) -> None:
    benchmark = MmbuClosed()
    sample = one(detection(options=options))
    assert benchmark.shown_route(sample) == "object detection"
    assert "bounding box" in benchmark.prompt(sample).text
    assert "Candidate" not in benchmark.prompt(sample).text
    assert len(benchmark.blemishes(sample)) == bool(options), "candidates that are not shown are told of"
    reply = Completion(text="<answer>[15, 20, 30, 39]</answer>", finish=Finish.STOP)
    (score,) = benchmark.score([ScoreItem(sample=sample, answer=benchmark.read(sample, reply))])
    assert score.correct is True
    assert score.detail["max_iou"] == pytest.approx(39 / 40)


def test_both_kinds_of_detection_are_scored_in_their_order() -> None:
    benchmark = MmbuClosed()
    candidate, free = one(detection()), one(detection(options=[]))
    said = {
        "<answer>B</answer>": (candidate, True),
        "<answer>[15, 20, 30, 40]</answer>": (free, True),
        "<answer>A</answer>": (candidate, False),
        "<answer>[1, 1, 1, 1]</answer>": (free, False),
        "I cannot tell": (candidate, False),
    }
    items = [
        ScoreItem(sample=sample, answer=benchmark.read(sample, Completion(text=text, finish=Finish.STOP)))
        for text, (sample, _) in said.items()
    ]
    scores = benchmark.score(items)
    assert [score.correct for score in scores] == [right for _, right in said.values()]
    assert scores[0].detail == {"chance": 1 / 3}
    assert (scores[2].fp, scores[2].fn) == (1, 1)
    assert (scores[4].fp, scores[4].fn) == (0, 1), "no answer is a miss only"
    far, empty = scored(benchmark, candidate, "<answer>[1, 1, 1, 1]</answer>", "<answer></answer>")
    assert (far.correct, far.fp, far.fn, far.detail["reason"]) == (False, 1, 1, OUTSIDE)
    assert (empty.correct, empty.fp, empty.fn) == (False, 0, 1)


# ---------------------------------------------------------------- several labels


def segmentation(**changes: Any) -> RawRow:
    fields = {
        "unique_id": "s",
        "question": "What does the mask cover?",
        "task": "fine-grained classification (from segmentation) | nuclei",
        "VQA_type": "open",
        "options": "['A) cell nucleus', 'B) fat, marrow', 'C) cytoplasm', 'D) None of the above']",
        "answer": "cytoplasm, cell nucleus",
        **changes,
    }
    return RawRow(position=0, fields=fields, images=(), where="line 1")


ANSWERS: dict[str, tuple[Any, str]] = {
    "texts": ("cytoplasm, cell nucleus", "A, C"),
    "a list": (["cytoplasm", "cell nucleus"], "A, C"),
    "a list in a text": ("['cytoplasm', 'cell nucleus']", "A, C"),
    "one text": ("cytoplasm", "C"),
    "a text with a comma": ("fat, marrow", "B"),
    "letters": ("C, A", "A, C"),
    "letters without a blank": ("A,C", "A, C"),
    "a list of letters": ("['A', 'C']", "A, C"),
    "one letter": ("C", "C"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_right_labels_of_a_row_from_segmentation(name: str) -> None:
    answer, letters = ANSWERS[name]
    sample = one(segmentation(answer=answer, VQA_type="closed"))
    assert (sample.route, sample.answer) == ("several_labels", letters)
    if "letter" in name:
        assert not MmbuClosed().samples(segmentation(answer=answer)), (
            "letters name options of closed rows only"
        )


@pytest.mark.parametrize("answer", ["cytoplasm, bone", "A, F", "cell"])
def test_rows_whose_labels_are_not_all_among_the_options_are_left_out(answer: str) -> None:
    assert not MmbuClosed().samples(segmentation(answer=answer, VQA_type="closed"))


def test_the_prompt_does_not_say_how_many_are_right() -> None:
    benchmark = MmbuClosed()
    answers = ("cytoplasm", "cytoplasm, fat, marrow")
    prompts = {benchmark.prompt(one(segmentation(answer=text))).text for text in answers}
    assert len(prompts) == 1
    assert "the letters of all of them" in prompts.pop()
    grounded = one(segmentation(task="classification | nuclei", answer="cytoplasm"))
    assert "several" not in benchmark.prompt(grounded).text
    assert not benchmark.samples(segmentation(task="classification | nuclei"))


def test_several_labels_count_one_by_one() -> None:
    benchmark = MmbuClosed()
    sample = one(segmentation())
    said = {
        "<answer>A, C</answer>": (True, 2, 0, 0),
        "<answer>C</answer>": (False, 1, 0, 1),
        "<answer>A, B, C</answer>": (False, 2, 1, 0),
        "<answer>B</answer>": (False, 0, 1, 2),
        "<answer>A, F</answer>": (False, 0, 1, 2),
        "<answer></answer>": (False, 0, 0, 2),
    }
    scores = scored(benchmark, sample, *said)
    assert [(s.correct, s.tp, s.fp, s.fn) for s in scores] == list(said.values())
    assert scores[0].detail["chance"] == 0.0, "picking one option is never all of them"
    (score,) = scored(benchmark, one(segmentation(answer="cytoplasm")), "C")
    assert (score.correct, score.detail["chance"]) == (True, 0.25)


def scored(benchmark: MmbuClosed, sample: Sample, *replies: str) -> list[Score]:
    completions = [Completion(text=text, finish=Finish.STOP) for text in replies]
    return benchmark.score(
        [ScoreItem(sample=sample, answer=benchmark.read(sample, reply)) for reply in completions]
    )


def test_several_labels_move_with_their_options() -> None:
    rotations = MmbuClosed(Form(circular=True)).samples(segmentation())
    assert [sample.answer for sample in rotations] == ["A, C", "B, D", "A, C", "B, D"]
    for sample in rotations:
        right = {sample.options["ABCD".index(letter)] for letter in sample.answer.split(", ")}
        assert right == {"cell nucleus", "cytoplasm"}
