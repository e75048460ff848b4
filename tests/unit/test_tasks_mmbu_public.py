from __future__ import annotations

import hashlib
from typing import Any

import pytest

from mmbu_async import tasks
from mmbu_async.errors import ConfigError, RowError
from mmbu_async.model import (
    Answer,
    Benchmark,
    Completion,
    Finish,
    ImageSlot,
    Score,
    ScoreItem,
    Status,
    Verdict,
)
from mmbu_async.tasks.mmbu_public import COLUMNS, FAMILIES, PROMPT_SHA256, MmbuPublic

DETECTION: dict[str, Any] = {"task": "object detection | nuclei", "options": [], "answer": "[[0, 0, 10, 20]]"}
SEGMENTATION: dict[str, Any] = {
    "task": "fine-grained classification (from segmentation) | chest",
    "options": ["A) effusion", "B) cardiomegaly", "C) nodule"],
    "answer": "effusion, cardiomegaly",
}


@pytest.fixture
def benchmark() -> MmbuPublic:
    return MmbuPublic.with_prompts()


def row(**changes: Any) -> dict[str, Any]:
    plain = {
        "unique_id": "r1",
        "question": "Which?",
        "task": "classification | skin | lesion",
        "options": ["A) melanoma", "B) nevus"],
        "answer": "nevus",
    }
    return plain | changes


def without(column: str) -> dict[str, Any]:
    return {name: value for name, value in row().items() if name != column}


def score(benchmark: MmbuPublic, text: str, verdict: bool | None = None, **changes: Any) -> Score:
    scale = changes.pop("image_scale", 1.0)
    how = changes.pop("how", "tag")
    item = ScoreItem(
        sample=benchmark.sample(row(**changes), 0),
        answer=Answer(text=text, how=how),
        verdict=Verdict(correct=verdict),
        image_scale=scale,
    )
    (found,) = benchmark.score([item])
    return found


# ---------------------------------------------------------------- registry and prompts


def test_the_registry_knows_its_names(benchmark: MmbuPublic) -> None:
    typed: Benchmark = benchmark
    assert typed.name in tasks.NAMES
    assert typed.data.hub == "mmbu/mmbu-public"


@pytest.mark.parametrize(
    ("name", "hint"), [("mmbu_public", "did you mean 'mmbu-public'"), ("x", "known are: .*mmbu-public")]
)
def test_an_unknown_benchmark_is_named_with_what_is_near(name: str, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        tasks.load(name)


def test_prompts_are_the_card_s_byte_for_byte(benchmark: MmbuPublic) -> None:
    assert benchmark.prompt_hashes() == PROMPT_SHA256


def test_prompt_hashes_are_of_what_is_sent() -> None:
    changed = MmbuPublic(dict.fromkeys(PROMPT_SHA256, "x"))
    assert set(changed.prompt_hashes().values()) == {hashlib.sha256(b"x").hexdigest()}


@pytest.mark.parametrize(
    ("task", "route", "shown", "family", "marker"),
    [
        (
            "object detection | a",
            "object_detection",
            "object detection",
            FAMILIES[0],
            "bounding box or boxes",
        ),
        (
            "fine-grained classification (from detection) | a",
            "single_answer",
            "from detection",
            FAMILIES[1],
            "concise",
        ),
        (
            "fine-grained classification (from segmentation) | a",
            "multi_label",
            "from segmentation",
            FAMILIES[2],
            "label or\nlabels",
        ),
        (
            "classification | a",
            "single_answer",
            "classification or counting",
            FAMILIES[3],
            "concise class label",
        ),
        ("classification", "single_answer", "classification or counting", FAMILIES[3], "concise class label"),
        (
            "classification from segmentation | a",
            "multi_label",
            "from segmentation",
            FAMILIES[3],
            "or\nlabels",
        ),
        (
            "counting | a (segmentation)",
            "single_answer",
            "classification or counting",
            FAMILIES[4],
            "concise",
        ),
        ("counting | a", "single_answer", "classification or counting", FAMILIES[4], "concise class label"),
        ("Counting | a", "single_answer", "classification or counting", FAMILIES[4], "concise class label"),
    ],
)
def test_routing(benchmark: MmbuPublic, task: str, route: str, shown: str, family: str, marker: str) -> None:
    sample = benchmark.sample(row(task=task, answer="[1, 2, 3, 4]"), 0)
    assert (sample.route, benchmark.shown_route(sample), benchmark.family(sample)) == (route, shown, family)
    assert marker in benchmark.prompt(sample).text


@pytest.mark.parametrize("question", ["Which?", "How many nan", "", "  ", "<answer>{question}"])
def test_the_question_is_sent_as_it_is(benchmark: MmbuPublic, question: str) -> None:
    prompt = benchmark.prompt(benchmark.sample(row(question=question), 0))
    image, text = prompt.parts
    assert image == ImageSlot(index=0)
    assert isinstance(text, str)
    assert text.startswith(f"{question}\n\nOutput format: After your rationale")
    assert (prompt.system or "").startswith("You are a medical vision-language assistant")


def test_neither_options_nor_answer_nor_metadata_are_sent(benchmark: MmbuPublic) -> None:
    secrets = {name: f"secret-{name}" for name in COLUMNS if name.startswith("metadata")}
    sample = benchmark.sample(row(options=["A) secret-1", "B) secret-2"], answer="secret-2", **secrets), 0)
    prompt = benchmark.prompt(sample)
    assert "secret" not in prompt.text + (prompt.system or "")


# ---------------------------------------------------------------- rows


def test_a_row_becomes_a_sample(benchmark: MmbuPublic) -> None:
    sample = benchmark.sample(
        row(microns_per_pixel=0.5, metadata_stain=None, template="full context", note="x" * 65, lines="a\nb"),
        7,
    )
    assert (sample.id, sample.position, sample.question, sample.answer) == ("r1", 7, "Which?", "nevus")
    assert sample.options == ("melanoma", "nevus")
    assert sample.strata == {
        "task": ("skin", "lesion"),
        "microns_per_pixel": ("0.5",),
        "template": ("full context",),
    }
    assert sample.fields["options"] == '["A) melanoma", "B) nevus"]'
    assert sample.fields["note"] == "x" * 65
    assert set(COLUMNS) <= set(sample.fields)
    assert all(value is None or isinstance(value, str) for value in sample.fields.values())


def test_values_that_are_no_text_are_read_all_the_same(benchmark: MmbuPublic) -> None:
    sample = benchmark.sample(row(unique_id=5, answer=15, options="[12, 15]"), 0)
    assert (sample.id, sample.answer, sample.options) == ("5", "15", ("12", "15"))


@pytest.mark.parametrize(
    "answer", [["effusion", "nodule"], "['effusion', 'nodule']", '["effusion", "nodule"]']
)
def test_a_list_of_labels_becomes_the_form_that_models_are_asked_for(
    benchmark: MmbuPublic, answer: Any
) -> None:
    assert benchmark.sample(row(**SEGMENTATION | {"answer": answer}), 0).answer == "effusion, nodule"


@pytest.mark.parametrize("answer", ["[18F]FDG", "[odd]", "['a' 'b']", "[{}]"])
def test_an_answer_in_brackets_stays_as_it_is(benchmark: MmbuPublic, answer: str) -> None:
    assert benchmark.sample(row(answer=answer), 0).answer == answer


def test_a_truth_that_is_a_real_list_keeps_its_numbers(benchmark: MmbuPublic) -> None:
    assert benchmark.sample(row(**DETECTION | {"answer": [[1, 2.5, 3, 4]]}), 0).answer == "[[1, 2.5, 3, 4]]"


def test_detection_needs_no_options_column(benchmark: MmbuPublic) -> None:
    plain = row(**DETECTION)
    del plain["options"]
    assert benchmark.sample(plain, 0).fields["options"] == "[]"


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (without("question"), "row r1: there is no column 'question'"),
        (without("task"), "row r1: there is no column 'task'"),
        (without("answer"), "row r1: there is no column 'answer'"),
        (without("unique_id"), "row number 3: there is no column 'unique_id'"),
        (without("options"), "row r1: there is no column 'options'"),
        (row(unique_id=" "), "column 'unique_id' is empty"),
        (row(unique_id=None), "row number 3: column 'unique_id' is empty"),
        (row(answer=None), "row r1: column 'answer' is empty"),
        (row(answer=" "), "column 'answer' is empty"),
        (row(answer=[]), "column 'answer' is empty"),
        (row(task="segmentation | x"), r"column 'task' starts with none .*'segmentation \| x'"),
        (row(task="fine-grained classification | x"), "column 'task' starts with none"),
        (row(task=None), "column 'task' starts with none"),
        (row(options={"A": 1}), "column 'options' is a dict"),
        (row(options="[broken]"), r"column 'options' looks like a list.*\(\[broken\]\)"),
        (row(**DETECTION | {"answer": "upper left"}), r"column 'answer' holds no box .*\(upper left\)"),
        (row(**DETECTION | {"answer": "[1, 2, 0, 4]"}), "width or height is not positive"),
        (row(**DETECTION | {"answer": "none " * 50}), r"\.\.\.\)"),
        (row(question="\ud800"), "column 'question' holds half a surrogate pair"),
    ],
)
def test_a_row_that_cannot_be_used_is_named_in_one_sentence(
    benchmark: MmbuPublic, bad: dict[str, Any], told: str
) -> None:
    with pytest.raises(RowError, match=told) as caught:
        benchmark.sample(bad, 2)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    ("changes", "blemish"),
    [
        ({}, None),
        ({"question": " "}, "the question is blank"),
        ({"question": "How many nan"}, "the question ends in ' nan'"),
        ({"options": None}, "there are no options to judge by"),
        ({"answer": "lentigo"}, "the answer is none of the options"),
        (SEGMENTATION, None),
        (DETECTION, None),
        (DETECTION | {"answer": "[[1, 2, 3, 4], [1, 2, 0, 4]]"}, "the truth holds a group that is no box"),
    ],
)
def test_blemishes(benchmark: MmbuPublic, changes: dict[str, Any], blemish: str | None) -> None:
    found = benchmark.blemishes(benchmark.sample(row(**changes), 0))
    assert len(found) == (blemish is not None)
    assert not blemish or found[0].startswith(blemish)


# ---------------------------------------------------------------- answers and scores


def test_a_reasoning_field_is_no_part_of_the_reply(benchmark: MmbuPublic) -> None:
    completion = Completion(text="It is a nevus.", reasoning="<answer>melanoma</answer>", finish=Finish.STOP)
    answer = benchmark.read(benchmark.sample(row(), 0), completion)
    assert (answer.text, answer.untagged) == ("It is a nevus.", True)


def test_the_judge_is_asked_about_answers_alone(benchmark: MmbuPublic) -> None:
    sample = benchmark.sample(row(), 0)
    item = benchmark.judge_item(sample, Answer(text="mole", how="tag"))
    assert item is not None
    assert (item.question, item.labels, item.true_answer, item.model_answer) == (
        "Which?",
        ("melanoma", "nevus"),
        "nevus",
        "mole",
    )
    assert benchmark.judge_item(sample, Answer(text=" ", how="tag")) is None
    detection = benchmark.sample(row(**DETECTION), 0)
    assert benchmark.judge_item(detection, Answer(text="[1, 2, 3, 4]", how="tag")) is None


@pytest.mark.parametrize(("verdict", "counts"), [(True, (True, 1, 0, 0)), (False, (False, 0, 1, 1))])
def test_a_single_answer_counts_once(benchmark: MmbuPublic, verdict: bool, counts: tuple[Any, ...]) -> None:
    found = score(benchmark, "mole", verdict)
    assert (found.correct, found.tp, found.fp, found.fn) == counts


@pytest.mark.parametrize("verdict", [None, True])
def test_an_empty_answer_is_wrong_without_a_judge(benchmark: MmbuPublic, verdict: bool | None) -> None:
    found = score(benchmark, " ", verdict)
    assert (found.status, found.correct, found.tp, found.fp, found.fn) == (Status.SCORED, False, 0, 0, 1)
    assert found.detail == {"reason": "the answer is empty"}
    several = score(benchmark, "", verdict, **SEGMENTATION)
    assert (several.tp, several.fp, several.fn) == (0, 0, 2)


def test_without_a_verdict_a_row_is_unjudged_not_wrong(benchmark: MmbuPublic) -> None:
    found = score(benchmark, "mole", None)
    assert (found.status, found.correct, found.tp, found.fp, found.fn) == (Status.UNJUDGED, None, 0, 0, 0)
    item = ScoreItem(sample=benchmark.sample(row(), 0), answer=Answer(text="mole", how="tag"))
    assert benchmark.score([item])[0].status is Status.UNJUDGED


@pytest.mark.parametrize(
    ("text", "verdict", "counts"),
    [
        ("effusion, cardiomegaly", True, (True, 2, 0, 0)),
        ("Effusion", False, (False, 1, 0, 1)),
        ("nodule, effusion", False, (False, 1, 1, 1)),
        ("something", False, (False, 0, 1, 2)),
    ],
)
def test_several_labels_count_one_by_one(
    benchmark: MmbuPublic, text: str, verdict: bool, counts: tuple[Any, ...]
) -> None:
    found = score(benchmark, text, verdict, **SEGMENTATION)
    assert (found.correct, found.tp, found.fp, found.fn) == counts
    assert found.detail["true_labels"] == ["effusion", "cardiomegaly"]


def test_a_truth_of_commas_is_one_label(benchmark: MmbuPublic) -> None:
    found = score(benchmark, "x", False, **SEGMENTATION | {"answer": ","})
    assert (found.tp, found.fp, found.fn) == (0, 1, 1)


def test_one_half_is_correct_and_a_hair_less_is_not(benchmark: MmbuPublic) -> None:
    assert score(benchmark, "[0, 0, 10, 10]", **DETECTION).correct
    less = score(benchmark, "[0, 0, 10, 9.9999999999999999999999]", **DETECTION)
    assert (less.correct, less.tp, less.fp, less.fn) == (False, 0, 1, 1)
    assert less.detail["max_iou"] < 0.5


@pytest.mark.parametrize(
    ("sent", "original"), [(1568, 4704), (1000, 3001), (1568, 5001), (7, 10), (999, 1000)]
)
def test_a_scaled_image_has_its_boxes_scaled_back(benchmark: MmbuPublic, sent: int, original: int) -> None:
    """The box that fills the scaled image fills the original: exactly half of a truth twice as high."""
    scale = sent / original
    truth = {"answer": f"[0, 0, {original}, {2 * original}]"}
    found = score(benchmark, f"[0, 0, {sent}, {sent}]", **DETECTION | truth, image_scale=scale)
    assert found.correct
    assert found.detail["predicted"][0] == pytest.approx([0, 0, original, original])
    assert found.detail["image_scale"] == scale


def test_an_image_sent_as_it_is_has_no_scale_in_its_score(benchmark: MmbuPublic) -> None:
    assert "image_scale" not in score(benchmark, "[0, 0, 1, 1]", **DETECTION).detail


def test_detection_tells_what_was_offered_and_what_matched(benchmark: MmbuPublic) -> None:
    truth = {"answer": "[[0, 0, 10, 20], [50, 50, 4, 4]]"}
    found = score(benchmark, "[[0, 0, 10, 20], [1, 0, 10, 20], [90, 90, 2, 2]]", **DETECTION | truth)
    detail = dict(found.detail)
    assert (found.correct, found.tp, found.fp, found.fn) == (True, 1, 0, 0)
    assert (detail["offered"], detail["box_tp"], detail["box_fp"], detail["box_fn"]) == (3, 1, 2, 1)
    assert detail["truth"] == [[0, 0, 10, 20], [50, 50, 4, 4]]
    assert "reason" not in detail


@pytest.mark.parametrize(
    ("text", "reason"),
    [("", "the answer is empty"), ("no lesion", "no group of four numbers"), ("[1, 2, 3]", "3 numbers")],
)
def test_no_box_is_wrong_with_the_reason_and_no_false_positive(
    benchmark: MmbuPublic, text: str, reason: str
) -> None:
    found = score(benchmark, text, **DETECTION)
    assert (found.correct, found.tp, found.fp, found.fn) == (False, 0, 0, 1)
    assert found.detail["reason"].startswith(reason)
    assert found.detail["max_iou"] == 0.0


def test_an_untagged_reply_is_read_strictly(benchmark: MmbuPublic) -> None:
    assert score(benchmark, "0, 0, 10, 20", **DETECTION).correct
    assert not score(benchmark, "0, 0, 10, 20", how="untagged", **DETECTION).correct


def test_scores_come_in_the_order_of_the_rows(benchmark: MmbuPublic) -> None:
    detection = benchmark.sample(row(**DETECTION), 0)
    judged = benchmark.sample(row(), 1)
    items = [
        ScoreItem(sample=detection, answer=Answer(text="[0, 0, 10, 20]", how="tag")),
        ScoreItem(sample=judged, answer=Answer(text="x", how="tag"), verdict=Verdict(correct=False)),
        ScoreItem(sample=detection, answer=Answer(text="[99, 0, 10, 20]", how="tag")),
        ScoreItem(sample=judged, answer=Answer(text="x", how="tag"), verdict=Verdict(correct=True)),
    ]
    assert [found.correct for found in benchmark.score(items)] == [True, False, False, True]
    assert benchmark.score([]) == []
