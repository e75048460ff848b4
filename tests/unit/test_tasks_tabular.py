"""Columns as published copies name them; where none fits, what was looked for and what was found is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from mmbu_async import tasks
from mmbu_async.errors import RowError
from mmbu_async.model import ImageRef, RawRow, Sample
from mmbu_async.tasks.tabular import find_columns

WANTED = {"question": ("question", "query"), "image": ("img_name", "Figure_path")}
IMAGE = (ImageRef(locator="x.png"),)


def raw(fields: Mapping[str, Any], position: int = 4) -> RawRow:
    return RawRow(position=position, fields=fields, images=IMAGE, image_columns=("image",), where="line 6")


def found(names: list[str], wanted: Any = WANTED, optional: Any = ()) -> dict[str, str]:
    return find_columns(raw(dict.fromkeys(names, "x")), wanted, dict(optional))


def test_the_first_candidate_that_is_there_wins() -> None:
    names = ["query", "question", "Figure_path"]
    assert found(names) == {"question": "question", "image": "Figure_path"}


def test_case_blanks_and_underscores_do_not_matter_where_nothing_fits_exactly() -> None:
    assert found([" Question", "Img Name"]) == {"question": " Question", "image": "Img Name"}
    assert found(["QUESTION", "question", "img_name"])["question"] == "question"
    assert found(["Question", "QUESTION", "img_name"])["question"] == "Question"


def test_optional_columns_may_be_missing() -> None:
    optional = {"language": ("q_lang",), "modality": ("modality",)}
    assert found(["question", "img_name", "Modality"], optional=optional) == {
        "question": "question",
        "image": "img_name",
        "modality": "Modality",
    }


def test_what_was_looked_for_and_what_was_found_is_told() -> None:
    with pytest.raises(RowError) as caught:
        found(["answer", "text"])
    assert str(caught.value) == (
        "row number 5: has no column for the question (looked for question, query) and none for the image "
        "(looked for img_name, Figure_path); found are answer, text: rename them, or give another copy of "
        "the data."
    )
    with pytest.raises(RowError, match="found are none"):
        found([])


# ---------------------------------------------------------------- rows as they are published

FOUR = ["ultrasound", "computed tomography", "magnetic resonance imaging", "X-ray radiography"]
PUBLISHED: dict[str, dict[str, Any]] = {
    "pmc-vqa": {
        "Figure_path": "PMC1064097_F1.jpg",
        "Question": "What is the uptake pattern?",
        "Answer": "computed tomography",
        **{f"Choice {letter}": f" {letter}:{text} " for letter, text in zip("ABCD", FOUR, strict=True)},
        "Answer_label": "B",
    },
    "omnimedvqa": {
        "dataset": "ACRIMA",
        "question_id": "ACRIMA_0000",
        "question_type": "Modality Recognition",
        "question": "What imaging technique was employed?",
        "gt_answer": FOUR[1],
        "image_path": "Images/ACRIMA/Im553_g_ACRIMA.png",
        **{f"option_{letter}": text for letter, text in zip("ABCD", FOUR, strict=True)},
        "modality_type": "Fundus Photography",
    },
    "gmai-mmbench": {
        "index": 17,
        "image": "base64",
        "question": "Which is it?",
        **dict(zip("ABCD", FOUR, strict=True)),
        "E": "None",
        "answer": "B",
        "category": FOUR[1],
        "original task": "CLS_2D",
        "department": "LMD",
        "clinical VQA task": "DD",
        "perceptual granularity": "I",
        "modality": "CT",
    },
    "microvqa": {
        "key_question": 3,
        "key_image": 2,
        "images_list": [],
        "question": "What do both show?",
        "choices": FOUR,
        "correct_index": 1,
        "task": 2,
        "task_str": "hypothesis_generation",
        "correct_answer": FOUR[1],
    },
    "pathvqa": {"image": None, "question": "Is it a cyst?", "answer": "yes"},
    "vqa-rad": {"image": None, "question": "Is it a cyst?", "answer": "No"},
    "slake": {
        "img_id": 1,
        "img_name": "xmlab1/source.jpg",
        "question": "Is there a lung?",
        "answer": "No",
        "q_lang": "en",
        "location": "Lung",
        "modality": "CT",
        "answer_type": "CLOSED",
        "base_type": "vqa",
        "content_type": "Organ",
        "triple": ["vhead", "_", "_"],
        "qid": 11934,
    },
    "mmmu-val": {
        "id": "validation_Art_1",
        "question": "What is <image 1>?",
        "options": str(FOUR),
        "explanation": "",
        "img_type": "['Paintings']",
        "answer": "B",
        "topic_difficulty": "Easy",
        "question_type": "multiple-choice",
        "subfield": "Drawing",
    },
    "mmmu-pro-vision": {"id": "test_Art_1", "options": str(FOUR), "answer": "B", "subject": "Art"},
}


def sample(benchmark: str, **changes: Any) -> Sample:
    row = {name: value for name, value in (PUBLISHED[benchmark] | changes).items() if value is not ...}
    (one,) = tasks.load(benchmark).samples(raw(row))
    return one


@pytest.mark.parametrize("benchmark", PUBLISHED)
def test_rows_as_they_are_published(benchmark: str) -> None:
    one = sample(benchmark)
    if one.options:
        assert one.options == tuple(FOUR)
        assert one.answer == "B"
    else:
        assert one.answer.lower() in ("yes", "no")


def test_what_reports_group_by() -> None:
    families = {name: tasks.load(name).family(sample(name)) for name in PUBLISHED}
    assert families["gmai-mmbench"] == "DD", "the task; `category` is the answer's own label"
    assert families["microvqa"] == "hypothesis_generation"
    assert families["omnimedvqa"] == "Modality Recognition"
    assert families["slake"] == families["vqa-rad"] == families["pathvqa"] == "closed questions"
    assert families["mmmu-val"] == families["mmmu-pro-vision"] == "Art and Design"
    assert sample("gmai-mmbench").strata["perception"] == ("I",)
    assert sample("slake").strata["language"] == ("en",)
    assert sample("omnimedvqa", modality_type=..., modality="CT").strata["modality"] == ("CT",)


def test_the_second_version_of_pmc_vqa_has_the_letter_in_its_answer() -> None:
    assert sample("pmc-vqa", Answer="C", Answer_label=...).answer == "C"


def test_none_may_be_an_option() -> None:
    assert sample("omnimedvqa", option_B="None", gt_answer="none").answer == "B"
    assert sample("omnimedvqa", gt_answer="None").answer == "", "else it stands for no public answer"


def test_fewer_options_than_columns() -> None:
    two = {"option_C": "", "option_D": ...}
    assert sample("omnimedvqa", **two).options == tuple(FOUR[:2])
    assert sample("gmai-mmbench", E="a fifth").options == (*FOUR, "a fifth")
    assert sample("gmai-mmbench", E="nan", D="none").options == tuple(FOUR[:3])


NEEDED = {
    "pmc-vqa": ("Question", "Choice C", "Answer_label"),
    "omnimedvqa": ("question_id", "question", "gt_answer"),
    "gmai-mmbench": ("index", "question", "answer"),
    "microvqa": ("key_question", "question", "choices", "correct_index"),
    "pathvqa": ("question", "answer"),
    "vqa-rad": ("question", "answer"),
    "slake": ("question", "answer"),
    "mmmu-val": ("id", "question", "options", "answer"),
    "mmmu-pro-vision": ("id", "options", "answer"),
}


@pytest.mark.parametrize(("benchmark", "column"), [(name, one) for name in NEEDED for one in NEEDED[name]])
def test_each_loader_says_which_columns_it_looked_for_and_what_it_found(benchmark: str, column: str) -> None:
    gone = {column: ...}
    if benchmark == "microvqa" and column == "correct_index":
        gone |= {"correct_answer": ...}
    if benchmark == "pmc-vqa" and column == "Answer_label":
        gone |= {"Answer": ...}
    with pytest.raises(RowError) as caught:
        sample(benchmark, **gone, **{"renamed by the copy": "x"})
    text = str(caught.value)
    assert f"(looked for {column}" in text
    there = [name for name in PUBLISHED[benchmark] if name not in gone]
    assert f"found are {', '.join([*there, 'renamed by the copy'])}" in text


@pytest.mark.parametrize("benchmark", ["omnimedvqa", "gmai-mmbench"])
def test_options_under_other_names(benchmark: str) -> None:
    pattern = "option_{}" if benchmark == "omnimedvqa" else "{}"
    gone = {pattern.format(letter): ... for letter in "ABCDE"}
    with pytest.raises(RowError, match="no column for the options") as caught:
        sample(benchmark, **gone)
    assert f"(looked for {pattern.format('A')}, {pattern.format('B')} and so on)" in str(caught.value)


BAD: dict[str, tuple[str, dict[str, Any], str]] = {
    "a gap in the options": ("omnimedvqa", {"option_B": ""}, "'option_B' is empty although later options"),
    "one option": (
        "omnimedvqa",
        {"gt_answer": FOUR[0]} | {f"option_{letter}": "" for letter in "BCD"},
        "has 1 option(s)",
    ),
    "an answer that is no option": (
        "omnimedvqa",
        {"gt_answer": "PET"},
        "'gt_answer' is neither a letter nor",
    ),
    "an answer that two options share": (
        "omnimedvqa",
        {"option_A": FOUR[1]},
        "neither a letter nor the text",
    ),
    "a letter out of range": ("gmai-mmbench", {"answer": "E"}, "names a letter beyond its 4 options"),
    "an empty choice": ("pmc-vqa", {"Choice D": " D: "}, "'Choice D' is empty; every row has four options"),
    "a label out of range": ("pmc-vqa", {"Answer_label": "E"}, "'Answer_label' names a letter beyond its 4"),
    "an index out of range": ("microvqa", {"correct_index": 4}, "is no place among its 4 options"),
    "a negative index": ("microvqa", {"correct_index": -1}, "is no place among its 4 options"),
    "choices that are no list": ("microvqa", {"choices": "['a"}, "'choices' looks like a list"),
    "a letter beyond MMMU's options": ("mmmu-val", {"answer": "E"}, "none of the letters of its 4 options"),
    "a text in place of MMMU's letter": ("mmmu-val", {"answer": FOUR[0]}, "none of the letters of its 4"),
    "one of several letters wrong": ("mmmu-val", {"answer": "['A', 'G']"}, "none of the letters of its 4"),
    "one option in MMMU": ("mmmu-val", {"options": "['a']", "answer": "A"}, "has 1 option(s)"),
    "no options in MMMU": ("mmmu-val", {"options": "[]"}, "is multiple-choice by its 'question_type'"),
    "options of MMMU that are no list": (
        "mmmu-val",
        {"options": "['a"},
        "column 'options' looks like a list",
    ),
    "a placeholder without its image": (
        "mmmu-val",
        {"question": "See <image 3>"},
        "names <image 3>, but column",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_rows_that_cannot_be_used(name: str) -> None:
    benchmark, changes, words = BAD[name]
    with pytest.raises(RowError) as caught:
        sample(benchmark, **changes)
    assert words in str(caught.value)


def test_several_right_letters_and_open_answers_of_mmmu() -> None:
    assert sample("mmmu-val", answer="['A', 'C']").answer == "['A', 'C']"
    opened = sample("mmmu-val", options="[]", answer=json.dumps(["5", "five"]), question_type="open")
    assert (opened.route, opened.options) == ("open", ())
    assert sample("mmmu-val", answer="?").answer == ""
