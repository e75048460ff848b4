"""Every benchmark on a small copy in its real layout: validated, run, stopped, resumed, scored anew."""

from __future__ import annotations

import base64
import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmbu_async import api, tasks
from mmbu_async.config import JudgeConfig, RunConfig
from mmbu_async.errors import BudgetReachedError, DataError
from mmbu_async.model import (
    ImageRef,
    ImageSlot,
    RawRow,
    Status,
)
from mmbu_async.simulator import Simulator, SimulatorConfig
from mmbu_async.tasks.forms import Form

MINI = Path(__file__).parents[1] / "data" / "mini_mmbu"
RETINA = (MINI / "images" / "retina.jpg").read_bytes()
CT = (MINI / "images" / "CT_small.png").read_bytes()
OPTIONS = ["ultrasound", "computed tomography", "magnetic resonance imaging", "X-ray radiography"]
ROWS = 6

Build = Callable[[Path], None]


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")


def struct(data: bytes) -> dict[str, Any]:
    return {"bytes": data, "path": "image.png"}


def parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), path)


def pmc_vqa(folder: Path) -> None:
    with (folder / "test_clean.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        letters = [f"Choice {letter}" for letter in "ABCD"]
        writer.writerow(["Figure_path", "Question", "Answer", *letters, "Answer_label"])
        for number in range(ROWS):
            choices = [f" {letter}:{text} " for letter, text in zip("ABCD", OPTIONS, strict=True)]
            figure = f"PMC{number // 2}_FIG1.jpg"
            writer.writerow([figure, "Which technique?", OPTIONS[1], *choices, "B"])
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        for number in range(ROWS // 2):
            archive.writestr(f"images/PMC{number}_FIG1.jpg", RETINA)


def mmmu(folder: Path, *, answers: bool = True) -> None:
    for subject in ("Art", "Clinical_Medicine"):
        rows = [
            {
                "id": f"validation_{subject}_{number}",
                "question": "Compare <image 1> with this." if number else "What is <image 1>?",
                "options": "['<image 2>', 'a line', 'neither']" if number else "[]",
                "explanation": "",
                "image_1": struct(CT),
                "image_2": struct(RETINA) if number else None,
                **{f"image_{place}": None for place in range(3, 8)},
                "img_type": "['Paintings']",
                "answer": ("A" if number else "5") if answers else "?",
                "topic_difficulty": "Easy",
                "question_type": "multiple-choice" if number else "open",
                "subfield": "Comparative",
            }
            for number in range(ROWS // 2)
        ]
        split = "validation" if answers else "test"
        parquet(folder / subject / f"{split}-00000-of-00001.parquet", rows)


def mmmu_test(folder: Path) -> None:
    mmmu(folder, answers=False)


def mmmu_pro(folder: Path) -> None:
    rows = [
        {
            "id": f"test_Art_{number}",
            "question": "What is <image 1>?",
            "options": str([f"option {place}" for place in range(10)]),
            "explanation": "",
            "image_1": struct(CT),
            **{f"image_{place}": None for place in range(2, 8)},
            "img_type": "['Paintings']",
            "answer": "J",
            "topic_difficulty": "Easy",
            "subject": "Art",
        }
        for number in range(ROWS)
    ]
    parquet(folder / "standard (10 options)" / "test-00000-of-00001.parquet", rows)


def mmmu_pro_vision(folder: Path) -> None:
    rows = [
        {
            "id": f"test_Art_{number}",
            "image": struct(CT),
            "options": str([f"option {place}" for place in range(10)]),
            "answer": "C",
            "subject": "Art",
        }
        for number in range(ROWS)
    ]
    parquet(folder / "vision" / "test-00000-of-00001.parquet", rows)


def mmbu_closed(folder: Path) -> None:
    """One row of each kind of the real split."""
    rows = [json.loads(line) for line in (MINI / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
    kinds = (
        "mini-count-0",
        "mini-detect-0",
        "mini-box-0",
        "mini-class-retina",
        "mini-seg-1",
        "mini-class-ihc",
    )
    rows = [row for row in rows if row["unique_id"] in kinds]
    (folder / "images").mkdir()
    for row in rows:
        (folder / row["file_name"]).write_bytes((MINI / row["file_name"]).read_bytes())
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def images_and_answers(folder: Path) -> None:
    rows = [
        {
            "image": struct(RETINA),
            "question": "Is this a retina?",
            "answer": "yes" if number % 2 else "fundus",
        }
        for number in range(ROWS)
    ]
    parquet(folder / "data" / "test-00000-of-00001.parquet", rows)


def slake(folder: Path) -> None:
    (folder / "imgs" / "xmlab1").mkdir(parents=True)
    (folder / "imgs" / "xmlab1" / "source.jpg").write_bytes(RETINA)
    rows = [
        {
            "img_id": 1,
            "img_name": "xmlab1/source.jpg",
            "question": "图中有肺吗?" if number % 2 else "Is there a lung?",
            "answer": "没有" if number % 2 else "No",
            "q_lang": "zh" if number % 2 else "en",
            "location": "Lung",
            "modality": "CT",
            "answer_type": "CLOSED",
            "base_type": "vqa",
            "content_type": "Organ",
            "triple": ["vhead", "_", "_"],
            "qid": number,
        }
        for number in range(ROWS)
    ]
    (folder / "test.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def omnimedvqa(folder: Path) -> None:
    (folder / "QA_information" / "Open-access").mkdir(parents=True)
    (folder / "Images").mkdir()
    (folder / "Images" / "ct.png").write_bytes(CT)
    rows = [
        {
            "dataset": "some CT",
            "question_id": f"some_ct_{number}",
            "question_type": "Modality Recognition",
            "question": "What modality is this?",
            "gt_answer": OPTIONS[1],
            "image_path": "Images/ct.png",
            "modality_type": "CT",
            **{f"option_{letter}": text for letter, text in zip("ABCD", OPTIONS, strict=True)},
        }
        for number in range(ROWS)
    ]
    (folder / "QA_information" / "Open-access" / "some.json").write_text(json.dumps(rows))


def gmai(folder: Path) -> None:
    names = ["index", "image", "question", *"ABCDE", "answer", "category", "clinical VQA task", "modality"]
    image = base64.b64encode(CT).decode()
    row = [image, "Which?", *OPTIONS, "", "B", OPTIONS[1], "Disease Diagnosis", "CT"]
    lines = ["\t".join(names), *("\t".join([str(number), *row]) for number in range(ROWS))]
    (folder / "GMAI_mm_bench_VAL.tsv").write_text("\n".join(lines))


def microvqa(folder: Path) -> None:
    rows = [
        {
            "key_question": number,
            "key_image": number,
            "images_list": [struct(CT), struct(RETINA)],
            "question": "What do both show?",
            "choices": OPTIONS,
            "correct_index": 1,
            "task": 1,
            "task_str": "perception",
        }
        for number in range(ROWS)
    ]
    parquet(folder / "data" / "train-00000.parquet", rows)


LAYOUTS: dict[str, Build] = {
    "pmc-vqa": pmc_vqa,
    "mmbu-closed": mmbu_closed,
    "mmmu-val": mmmu,
    "mmmu-test": mmmu_test,
    "mmmu-pro": mmmu_pro,
    "mmmu-pro-vision": mmmu_pro_vision,
    "pathvqa": images_and_answers,
    "vqa-rad": images_and_answers,
    "slake": slake,
    "omnimedvqa": omnimedvqa,
    "gmai-mmbench": gmai,
    "microvqa": microvqa,
}


def config(
    simulator: Simulator, folder: Path, benchmark: str, endpoint: str = "openai", **changes: Any
) -> RunConfig:
    base = f"{simulator.url}/v1"
    settings: dict[str, Any] = {
        "name": "r",
        "endpoint": endpoint,
        "base_url": base if endpoint == "openai" else simulator.url,
        "model": "m",
        "data": str(folder / "data"),
        "store": folder / "s.sqlite",
        "judge": JudgeConfig(endpoint="openai", base_url=base),
    }
    return RunConfig(benchmark=benchmark, **settings | changes)


def built(folder: Path, build: Build) -> Path:
    (folder / "data").mkdir()
    build(folder / "data")
    return folder


def test_every_benchmark_has_its_layout() -> None:
    assert {*LAYOUTS, "mmbu-public"} == set(tasks.NAMES)


@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
@pytest.mark.parametrize("benchmark", LAYOUTS)
async def test_the_whole_way(tmp_path: Path, benchmark: str, endpoint: str) -> None:
    built(tmp_path, LAYOUTS[benchmark])
    async with Simulator(SimulatorConfig()) as simulator:
        settings = config(simulator, tmp_path, benchmark, endpoint)
        dry = api.dry_run(settings)
        assert (dry.rows, dry.problem_count) == (ROWS, 0)
        # Dear enough that the third row does not fit under the cap.
        priced = settings.model_copy(
            update={"input_price": 0.0, "output_price": 1.0, "max_tokens": 1_000_000, "max_cost": 1.0}
        )
        with pytest.raises(BudgetReachedError):
            await api.evaluate(priced.model_copy(update={"concurrency": 1}))
        begun = sum(row.completion is not None for row in api.rows("r", store=tmp_path / "s.sqlite"))
        assert 0 < begun < ROWS
        result = await api.resume("r", store=tmp_path / "s.sqlite", changes={"max_cost": 1000.0})
        assert result.complete
        await simulator.settled()
        assert len(simulator.log) == ROWS, "each row was bought once"
        report = result.report()
        assert (report.rows.scored, report.rows.ungraded) == (
            (0, ROWS) if benchmark == "mmmu-test" else (ROWS, 0)
        )
        rescored = api.rescore("r", store=tmp_path / "s.sqlite")
        assert (rescored.rows, rescored.changed) == (ROWS, ())


async def test_a_split_without_public_answers(tmp_path: Path) -> None:
    built(tmp_path, lambda folder: mmmu(folder, answers=False))
    async with Simulator(SimulatorConfig()) as simulator:
        result = await api.evaluate(config(simulator, tmp_path, "mmmu-test"))
    assert result.complete
    assert {row.status for row in result} == {Status.UNGRADED}
    report = result.report()
    assert report.first_line.startswith("UNGRADED: 6 rows")
    out = tmp_path / "answers.submission.json"
    assert api.export("r", out, store=tmp_path / "s.sqlite") == ROWS
    assert set(json.loads(out.read_text())) == {row.sample.id for row in result}
    assert report.overall.n == 0


async def test_closed_mmbu_from_the_public_split(tmp_path: Path) -> None:
    async with Simulator(SimulatorConfig()) as simulator:
        settings = config(simulator, tmp_path, "mmbu-closed", data=str(MINI))
        result = await api.evaluate(settings)
        await simulator.settled()
        assert len(simulator.log) == 33, "no judge is asked"
        families = {row.family for row in result}
        assert len(families) == 5
        circular = await api.evaluate(
            settings.model_copy(update={"name": "c", "circular": True, "task": ("classification",)})
        )
        assert {row.sample.id.partition("@")[0] for row in circular} >= {"mini-class-ihc"}
        assert sum(row.sample.id.startswith("mini-class-ihc@") for row in circular) == 4


def with_candidates(folder: Path, table: str) -> dict[str, str]:
    """The detection rows of the real split, each with four candidate boxes; returns the right letters."""
    (folder / "images").mkdir(parents=True)
    rows = [json.loads(line) for line in (MINI / "metadata.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if row["task"].startswith("object detection")]
    right: dict[str, str] = {}
    for number, row in enumerate(rows):
        (folder / row["file_name"]).write_bytes((MINI / row["file_name"]).read_bytes())
        true, *_ = json.loads(row["answer"])
        x, y, width, height = true
        boxes = [[x + width, y + height, width, height], [1, 1, 3, 3], [x, y + 2 * height, 9, 9]]
        boxes.insert(number % 4, true)
        options = [f"{letter}) {box}" for letter, box in zip("ABCD", boxes, strict=True)]
        # Some closed rows name the box, some its letter; one has candidates of which none is true.
        answer = "ABCD"[number % 4] if number % 2 else json.dumps(true)
        row |= {"VQA_type": "closed", "options": str(options), "answer": answer}
        right[row["unique_id"]] = "ABCD"[number % 4]
    lost = {**rows[0], "unique_id": "lost", "answer": "[[150, 150, 5, 5]]"}
    rows.append(lost)
    if table.endswith(".tsv"):
        lines = ["\t".join(rows[0]), *("\t".join(str(row[name] or "") for name in row) for row in rows)]
    else:
        lines = [json.dumps(row) for row in rows]
    (folder / table).write_text("\n".join(lines), encoding="utf-8")
    return right


@pytest.mark.parametrize("table", ["metadata.jsonl", "metadata.tsv"])
@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
async def test_closed_detection_among_candidate_boxes(tmp_path: Path, table: str, endpoint: str) -> None:
    right = with_candidates(tmp_path / "data", table)
    async with Simulator(SimulatorConfig()) as simulator:
        settings = config(simulator, tmp_path, "mmbu-closed", endpoint)
        checked = api.check_data("mmbu-closed", str(tmp_path / "data"))
        assert any("no true one" in words for words in checked.rows.blemishes)
        assert {prompt.text.count("Candidate boxes") for prompt in checked.rows.prompts.values()} == {0, 1}
        result = await api.evaluate(settings)
        await simulator.settled()
        assert len(simulator.log) == len(right) + 1, "no judge is asked"
    rows = {row.sample.id: row for row in result}
    lost = rows.pop("lost")
    assert lost.score is not None and "max_iou" in lost.score.detail
    assert {key: row.sample.answer for key, row in rows.items()} == right
    picked = {key: row.answer.text for key, row in rows.items() if row.answer}
    assert {row.answer.how for row in rows.values() if row.answer} == {"tag"}
    assert {key: row.score.correct for key, row in rows.items() if row.score} == {
        key: picked[key] == letter for key, letter in right.items()
    }
    report = result.report()
    assert report.complete and report.overall.chance == 0.25
    assert report.rows.right >= 0.7 * len(right), "the eyes of the simulator find most nuclei"
    assert report.detection is not None and report.detection.rows == 1


@pytest.mark.parametrize(("answer", "letter"), [("b", "B"), ("B)", "B"), ("nevus", "B"), ("melanoma", "A")])
def test_a_closed_row_may_name_its_answer_by_letter(answer: str, letter: str) -> None:
    fields = {
        "unique_id": "u",
        "question": "Which?",
        "task": "classification | skin",
        "VQA_type": "closed",
        "options": "['A) melanoma', 'B) nevus']",
        "answer": answer,
    }
    (sample,) = tasks.load("mmbu-closed").samples(
        RawRow(position=0, fields=fields, images=(), where="line 1")
    )
    assert (sample.answer, sample.options) == (letter, ("melanoma", "nevus"))
    open_row = {**fields, "VQA_type": "open", "answer": "wart"}
    assert not tasks.load("mmbu-closed").samples(
        RawRow(position=0, fields=open_row, images=(), where="line 1")
    )


def test_entities_and_line_ends_in_options_are_kept_as_they_are() -> None:
    fields = {
        "index": 1,
        "Question": "pH &lt; 7?",
        "Answer_label": "A",
        **{f"Choice {letter}": f" {letter}:x &amp; y\n{letter} " for letter in "ABCD"},
    }
    benchmark = tasks.load("pmc-vqa")
    (sample,) = benchmark.samples(RawRow(position=0, fields=fields, images=(), where="line 2"))
    assert sample.options[0] == "x &amp; y\nA"
    assert "pH &lt; 7?\n\nA) x &amp; y\nA\nB) x" in benchmark.prompt(sample).text


def test_data_check_says_what_was_found(tmp_path: Path) -> None:
    built(tmp_path, pmc_vqa)
    found = api.check_data("pmc-vqa", str(tmp_path / "data"))
    assert any("images.zip" in line for line in found.found)
    assert (found.rows.rows, found.rows.problem_count) == (ROWS, 0)
    assert {benchmark.name for benchmark in api.benchmarks()} == set(tasks.NAMES)
    assert all(benchmark.licence and benchmark.citation for benchmark in api.benchmarks())


def test_shuffled_options_are_the_same_in_every_run(tmp_path: Path) -> None:
    raw = RawRow(
        position=0,
        fields={
            "index": 7,
            "Question": "Which?",
            "Answer_label": "B",
            **{f"Choice {letter}": f"{letter}:{text}" for letter, text in zip("ABCD", OPTIONS, strict=True)},
        },
        images=(),
        where="line 2",
    )
    one, two = (tasks.load("pmc-vqa", Form(shuffle=3)).samples(raw)[0] for _ in range(2))
    assert one == two
    assert one.options["ABCD".index(one.answer)] == OPTIONS[1]
    orders = {tasks.load("pmc-vqa", Form(shuffle=seed)).samples(raw)[0].options for seed in range(20)}
    assert len(orders) > 5


def test_images_stand_where_the_question_names_them(tmp_path: Path) -> None:
    benchmark = tasks.load("mmmu-val")
    raw = RawRow(
        position=0,
        fields={
            "id": "validation_Art_1",
            "question": "Look at <image 2>, then <image 1>.",
            "options": "['<image 1>', 'x']",
            "answer": "A",
        },
        images=(ImageRef(locator="one"), ImageRef(locator="two"), ImageRef(locator="three")),
        image_columns=("image_1", "image_2", "image_3"),
        where="row 1",
    )
    (sample,) = benchmark.samples(raw)
    parts = benchmark.prompt(sample).parts
    assert [part.index if isinstance(part, ImageSlot) else "" for part in parts] == [
        2,
        "",
        1,
        "",
        0,
        "",
        0,
        "",
    ]
    assert any("placeholder" in blemish for blemish in benchmark.blemishes(sample))


BAD: dict[str, tuple[str, Callable[[dict[str, Any]], Any], str]] = {
    "options that are not four": (
        "pmc-vqa",
        lambda row: row.update({"Choice C": " C: "}),
        "'Choice C' is empty",
    ),
    "a letter out of range": ("pmc-vqa", lambda row: row.update(Answer_label="E"), "'Answer_label'"),
    "a placeholder without its image": (
        "mmmu-val",
        lambda row: row.update(question="See <image 3>"),
        "<image 3>",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows(name: str) -> None:
    benchmark, change, words = BAD[name]
    row: dict[str, Any] = {
        "id": "validation_Art_1",
        "question": "Q",
        "Question": "Q",
        "options": "['a', 'b']",
        "answer": "A",
        "Answer_label": "A",
        **{f"Choice {letter}": f"{letter}:x{letter}" for letter in "ABCD"},
    }
    change(row)
    with pytest.raises(DataError, match=words):
        tasks.load(benchmark).samples(RawRow(position=0, fields=row, images=(), where="line 2"))
