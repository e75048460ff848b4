import csv
import errno
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mmbu_async.errors import ConfigError, StoreFullError
from mmbu_async.model import Usage
from mmbu_async.report import export
from mmbu_async.report import parquet as parquet_module
from mmbu_async.store import RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]

LONG = "x" * 100_000
ROWS: list[Mapping[str, Any]] = [
    {
        "id": "right",
        "reply": "why\n<answer>nucleus</answer>",
        "committed": "nucleus",
        "judged": True,
        "failures": ["rate_limit"],
        "fields": {"task": "counting | nuclei", "metadata_stain": "=1+1", "microns_per_pixel": "-0.5"},
        "strata": {"task": ("nuclei",)},
    },
    {"id": "failed", "failures": ["bad_request"], "fields": {"task": "counting", "new column": "1"}},
    {"id": "long", "reply": LONG, "judged": False, "cost": None, "usage": Usage(reported=False)},
    {"id": "odd", "reply": 'a\x00b\u202ec, "quoted"\r\n細胞\ttab', "judged": None, "judge_reply": "?"},
    {"id": "=cmd()", "reply": "=2+3", "judged": True, "fields": {"task": "-5"}},
    {
        "id": "boxes",
        "reply": "[1, 2, 3, 4]",
        "correct": False,
        "detail": {"max_iou": 0.25, "predicted": [[1, 2, 3, 4]], "truth": [[1, 2, 3, 8]]},
    },
]


def written(make_run: MakeRun, path: Path) -> Path:
    assert export(*make_run(ROWS), path) == len(ROWS)
    return path


def jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def csv_rows(path: Path) -> list[dict[str, str]]:
    csv.field_size_limit(10**7)
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def parquet(path: Path) -> list[dict[str, Any]]:
    return list(pq.read_table(path).to_pylist())


def test_json_lines_hold_everything_as_it_is(make_run: MakeRun, tmp_path: Path) -> None:
    rows = jsonl(written(make_run, tmp_path / "rows.jsonl"))
    assert [row["row_id"] for row in rows] == [row["id"] for row in ROWS]
    right, failed, long, odd, _, boxes = rows
    assert (right["status"], right["correct"], right["answer"], right["tp"]) == ("scored", True, "nucleus", 1)
    assert (right["attempts"], right["input_tokens"], right["finish"]) == (2, 1000, "stop")
    assert right["cost_usd"] == pytest.approx(0.011)
    assert (right["judge"], right["verdict"]) == ("claude-sonnet-5", True)
    assert [(call["judge"], call.get("failure"), call.get("finish")) for call in right["calls"]] == [
        (None, "rate_limit", None),
        (None, None, "stop"),
        ("claude-sonnet-5", None, "stop"),
    ]
    assert right["fields"]["metadata_stain"] == "=1+1"
    assert right["strata"] == {"task": ["nuclei"]}
    assert (failed["status"], failed["failure_kind"], failed["reply"]) == ("failed", "bad_request", None)
    assert long["reply"] == LONG
    assert odd["reply"] == ROWS[3]["reply"]
    assert (odd["status"], odd["verdict"], odd["judge_reply"]) == ("unjudged", None, "?")
    assert boxes["score_detail"]["predicted"] == [[1, 2, 3, 4]]


def test_what_is_unknown_is_null_and_not_nought(make_run: MakeRun, tmp_path: Path) -> None:
    long = jsonl(written(make_run, tmp_path / "rows.jsonl"))[2]
    assert (long["input_tokens"], long["output_tokens"]) == (None, None)
    assert long["cost_unknown"] == 1
    failed = jsonl(tmp_path / "rows.jsonl")[1]
    assert (failed["correct"], failed["answer"], failed["total_s"]) == (None, None, None)


def test_csv_has_a_column_for_each_of_the_datasets(make_run: MakeRun, tmp_path: Path) -> None:
    rows = csv_rows(written(make_run, tmp_path / "rows.csv"))
    right, failed, long, odd, formula, _ = rows
    assert right["data.task"] == "counting | nuclei"
    assert right["data.new column"] == ""
    assert failed["data.new column"] == "1"
    assert (right["correct"], right["tp"], right["status"]) == ("true", "1", "scored")
    assert json.loads(right["options"]) == ["nucleus", "nucleolus"]
    assert json.loads(right["calls"])[0]["failure"] == "rate_limit"
    assert long["reply"] == LONG
    assert odd["reply"] == str(ROWS[3]["reply"]).replace("\x00", "\u2400")
    assert (formula["row_id"], formula["reply"]) == ("'=cmd()", "'=2+3")


def test_csv_is_safe_from_formulas_and_keeps_numbers(make_run: MakeRun, tmp_path: Path) -> None:
    right, *_, formula, _ = csv_rows(written(make_run, tmp_path / "rows.csv"))
    assert right["data.metadata_stain"] == "'=1+1"
    assert right["data.microns_per_pixel"] == "-0.5"
    assert formula["data.task"] == "-5"


def test_parquet_is_typed(make_run: MakeRun, tmp_path: Path) -> None:
    path = written(make_run, tmp_path / "rows.parquet")
    right, failed, long, odd, formula, boxes = parquet(path)
    assert (right["correct"], right["tp"], right["options"]) == (True, 1, ["nucleus", "nucleolus"])
    assert right["data.task"] == "counting | nuclei"
    assert (failed["correct"], failed["data.metadata_stain"]) == (None, None)
    assert long["reply"] == LONG
    assert odd["reply"] == ROWS[3]["reply"]
    assert formula["reply"] == "=2+3"
    assert json.loads(boxes["score_detail"])["max_iou"] == 0.25


def test_the_three_formats_have_the_same_columns(make_run: MakeRun, tmp_path: Path) -> None:
    store, run = make_run(ROWS)
    for name in ("rows.jsonl", "rows.csv", "rows.parquet"):
        export(store, run, tmp_path / name)
    nested = [*(name for name in jsonl(tmp_path / "rows.jsonl")[0] if name != "fields")]
    columns = [f"data.{name}" for name in ("metadata_stain", "microns_per_pixel", "new column", "task")]
    assert list(csv_rows(tmp_path / "rows.csv")[0]) == nested + columns
    assert pq.read_schema(tmp_path / "rows.parquet").names == nested + columns


def test_parquet_is_written_group_by_group(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_module, "ROWS_A_GROUP", 4)
    monkeypatch.setattr(parquet_module, "TEXT_A_GROUP", 50_000)
    file = pq.ParquetFile(written(make_run, tmp_path / "rows.parquet"))
    sizes = [file.metadata.row_group(number).num_rows for number in range(file.metadata.num_row_groups)]
    assert sizes == [3, 3]  # the third row's reply fills the first group


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_run_without_rows_gives_a_file_without_rows(make_run: MakeRun, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    assert export(*make_run(ROWS, limit=0), path) == 0
    assert (parquet(path) if ending == "parquet" else path.read_text()) in ([], "")


@pytest.mark.parametrize(
    ("name", "form"), [("rows.ndjson", None), ("ROWS.JSONL", None), ("rows.txt", "jsonl")]
)
def test_the_format_is_named_by_the_ending_or_by_hand(
    make_run: MakeRun, tmp_path: Path, name: str, form: Any
) -> None:
    export(*make_run(ROWS), tmp_path / name, form=form)
    assert len(jsonl(tmp_path / name)) == len(ROWS)


def test_an_ending_without_format_is_refused(make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"rows\.xlsx: its ending names no export format; choose one of"):
        export(*make_run(ROWS), tmp_path / "rows.xlsx")


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_place_that_cannot_be_written_is_named(make_run: MakeRun, tmp_path: Path, ending: str) -> None:
    with pytest.raises(ConfigError, match=f"missing/rows.{ending}: cannot be written"):
        export(*make_run(ROWS), tmp_path / "missing" / f"rows.{ending}")


def test_a_broken_export_leaves_the_earlier_file(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run = make_run(ROWS)
    path = tmp_path / "rows.jsonl"
    path.write_text("earlier")
    details = store.details

    def full(run_id: int) -> Iterator[Any]:
        yield next(details(run_id))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store, "details", full)
    with pytest.raises(StoreFullError, match="the disk is full"):
        export(store, run, path)
    assert path.read_text() == "earlier"
    assert [found.name for found in tmp_path.glob("*.part")] == []
