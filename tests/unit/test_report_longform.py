"""The long form: read back by pandas and pyarrow, and the same figures as the report's."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pandas as pd
import pyarrow.parquet as pq
import pytest

from mmbu_async import api
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError, MmbuError, RunNotFoundError, StoreFullError
from mmbu_async.model import Verdict
from mmbu_async.pipeline.opening import rules_of
from mmbu_async.pipeline.scoring import prompt_sha
from mmbu_async.report import build_report, longform
from mmbu_async.store import RunRecord, Store, VerdictRecord, Writer
from tests.every_form import invoked
from tests.stored_run import MakeRun

RUN = "test-run"
ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": "two topics",
        "family": "counting",
        "strata": {"task": ("nuclei", "cells"), "metadata_stain": ("H&E",)},
        "reply": "<answer>nucleus</answer>",
        "committed": "nucleus",
        "judged": True,
        "detail": {"cluster": "figure 1"},
    },
    {
        "id": "no stain",
        "family": "counting",
        "strata": {"task": ("nuclei",), "metadata_stain": ()},
        "reply": "<answer>lymphocyte</answer>",
        "committed": "lymphocyte",
        "judged": False,
    },
    {"id": "failed", "family": "classification", "strata": {"task": ("cells",)}, "failures": ["timeout"]},
    {
        "id": "boxes",
        "family": "object detection",
        "strata": {"task": ("cells",), "metadata_stain": ("H&E",)},
        "reply": "<answer>[1, 2, 3, 4]</answer>",
        "correct": False,
        "fp": 0,
    },
]


def exported(make_run: MakeRun, tmp_path: Path, *runs: str) -> Any:
    """As pandas reads it; without types, since its stubs are not everywhere."""
    path = tmp_path / "long.parquet"
    for run in dict.fromkeys(runs or (RUN,)):
        store, _ = make_run(ROWS, name=run)
    api.export_long(runs or (RUN,), path, store=store.path)
    return pd.read_parquet(path)


def values(column: Any) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def test_types_are_those_that_pandas_groups_by_at_once(make_run: MakeRun, tmp_path: Path) -> None:
    frame = exported(make_run, tmp_path)
    assert list(frame.columns) == list(longform.COLUMNS)
    words = {name for name, kind in frame.dtypes.items() if kind == "category"}
    assert words == {
        *("run", "model", "benchmark", "dataset", "judge", "family", "attribute", "value", "status"),
        "scorer",
    }
    schema = pq.read_schema(tmp_path / "long.parquet")
    kinds = {name: str(schema.field(name).type) for name in ("position", "correct", "tp", "weight", "row_id")}
    assert kinds == {
        "position": "int32",
        "correct": "int8",
        "tp": "int32",
        "weight": "double",
        "row_id": "string",
    }
    assert schema.field("weight").metadata[b"description"].decode() == longform.COLUMNS["weight"][1]


def test_a_row_has_a_line_for_each_of_its_values_and_one_for_all(make_run: MakeRun, tmp_path: Path) -> None:
    frame = exported(make_run, tmp_path)
    columns = [values(frame[name]) for name in ("row_id", "attribute", "value", "weight")]
    assert list(zip(*columns, strict=True)) == [
        ("two topics", "(all)", "(all)", 1.0),
        ("two topics", "metadata_stain", "H&E", 1.0),
        ("two topics", "task", "nuclei", 0.5),
        ("two topics", "task", "cells", 0.5),
        ("no stain", "(all)", "(all)", 1.0),
        ("no stain", "metadata_stain", None, 1.0),
        ("no stain", "task", "nuclei", 1.0),
        ("failed", "(all)", "(all)", 1.0),
        ("failed", "metadata_stain", None, 1.0),
        ("failed", "task", "cells", 1.0),
        ("boxes", "(all)", "(all)", 1.0),
        ("boxes", "metadata_stain", "H&E", 1.0),
        ("boxes", "task", "cells", 1.0),
    ]


def test_what_has_no_score_is_null_and_not_wrong(make_run: MakeRun, tmp_path: Path) -> None:
    frame = exported(make_run, tmp_path)
    whole = frame[frame.attribute == "(all)"].set_index("row_id")
    assert whole.loc["failed", ["correct", "tp", "fp", "fn", "scorer"]].isna().all()
    assert whole.loc["failed", "status"] == "failed"
    assert values(whole.scorer) == ["claude-sonnet-5", "claude-sonnet-5", None, "rule"]
    assert values(whole.cluster) == ["figure 1", None, None, None]
    assert list(whole.position) == [0, 1, 2, 3]


def test_a_groupby_gives_the_tables_of_the_report(make_run: MakeRun, tmp_path: Path) -> None:
    rows = [one for one in ROWS if one["id"] != "failed"]
    store, run = make_run(rows)
    api.export_long([RUN], tmp_path / "long.parquet", store=store.path)
    frame: Any = pd.read_parquet(tmp_path / "long.parquet")
    report = build_report(store, run)

    groups = frame.groupby(["run", "attribute", "value"], dropna=False, observed=True)
    accuracy = groups.correct.mean().to_dict()
    sums = groups[["tp", "fp", "fn"]].sum()
    f1 = (2 * sums.tp / (2 * sums.tp + sums.fp + sums.fn)).to_dict()
    told = {
        (RUN, attribute.name, group.name): group
        for attribute in report.attributes
        for group in attribute.groups
    } | {(RUN, "(all)", "(all)"): report.overall}
    found = {(run, name, None if pd.isna(value) else value) for run, name, value in accuracy}
    assert found == set(told)
    for (run_name, name, value), figure in accuracy.items():
        group = told[run_name, name, None if pd.isna(value) else value]
        assert (figure, f1[run_name, name, value]) == (group.accuracy.value, group.f1.value)

    families = frame[frame.attribute == "(all)"].groupby("family", observed=True).correct.mean().to_dict()
    assert families == {group.name: group.accuracy.value for group in report.families}


def test_several_runs_are_in_one_file_in_the_order_given(make_run: MakeRun, tmp_path: Path) -> None:
    frame = exported(make_run, tmp_path, "second", RUN, "second")
    assert list(dict.fromkeys(frame.run)) == ["second", RUN]
    assert (frame.run == RUN).sum() == (frame.run == "second").sum() == 13
    assert frame.dataset.nunique() == 1


def test_it_is_streamed(make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row group a page of rows; their dictionaries are one in pandas."""
    monkeypatch.setattr(longform, "ROWS_A_GROUP", 3)
    frame = exported(make_run, tmp_path)
    file = pq.ParquetFile(tmp_path / "long.parquet")
    assert [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)] == [10, 3]
    assert list(frame.value.cat.categories) == ["(all)", "H&E", "nuclei", "cells"]


async def judge_anew(store: Store, run: RunRecord, judge: int, verdicts: Mapping[str, bool]) -> None:
    """Store what another judge holds of the rows' answers as they are read today."""
    rules = rules_of(RunConfig(model="m"))
    async with Writer.open(store.path, synchronous="normal") as writer:
        for row in store.rows(run.id):
            if row.sample.id not in verdicts or row.completion is None:
                continue
            item = rules.benchmark.judge_item(row.sample, rules.benchmark.read(row.sample, row.completion))
            assert item is not None
            verdict = VerdictRecord(
                run_id=run.id,
                sample_key=row.key,
                judge_id=judge,
                verdict=Verdict(correct=verdicts[row.sample.id], reply="so I hold"),
                prompt_sha=prompt_sha(rules.fill(item)),
            )
            await writer.write(verdict)


async def test_every_judge_has_the_rows_as_it_would_score_them(make_run: MakeRun, tmp_path: Path) -> None:
    store, run = await asyncio.to_thread(make_run, ROWS)
    other = store.judge("other judge", {"model": "other"}, now=1.0)
    await judge_anew(store, run, other.id, {"two topics": False, "no stain": True})
    for every_judge, judges in ((False, {"claude-sonnet-5"}), (True, {"claude-sonnet-5", "other judge"})):
        frame = exported_again(store, tmp_path, every_judge=every_judge)
        assert set(frame.judge) == judges
    whole = frame[frame.attribute == "(all)"]
    held = whole.pivot(index="row_id", columns="judge", values="correct").to_dict("index")
    assert held["two topics"] == {"claude-sonnet-5": 1, "other judge": 0}
    assert held["no stain"] == {"claude-sonnet-5": 0, "other judge": 1}
    scorers = whole[whole.judge == "other judge"].set_index("row_id").scorer.to_dict()
    assert scorers["two topics"] == "other judge"
    assert set(whole[whole.row_id == "failed"].status) == {"failed"}


def exported_again(store: Store, tmp_path: Path, *, every_judge: bool) -> Any:
    api.export_long([RUN], tmp_path / "long.parquet", store=store.path, every_judge=every_judge)
    return pd.read_parquet(tmp_path / "long.parquet")


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        (("--long", "--out", "long.csv"), ConfigError, r"long\.csv: the long form is written as Parquet"),
        (("more", "--out", "rows.parquet"), ConfigError, "several runs go into one file in long form alone"),
        (("--every-judge", "--out", "rows.parquet"), ConfigError, "--every-judge is for the long form"),
        (("more", "--long", "--out", "l.parquet"), RunNotFoundError, "there is no run 'more'"),
        (("--long", "--out", "no/l.parquet"), ConfigError, r"no/l\.parquet: cannot be written"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    make_run: MakeRun,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Sequence[str],
    error: type[MmbuError],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    store, _ = make_run(ROWS)
    with pytest.raises(error, match=words):
        invoked(["export", RUN, *command], store.path)
    assert [path.name for path in tmp_path.glob("*.p*")] == []


def test_a_broken_export_leaves_the_earlier_file(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.parquet"
    exported(make_run, tmp_path)
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(longform, "_batch", full_disk)
        with pytest.raises(StoreFullError, match="the disk is full"):
            api.export_long([RUN], path, store=tmp_path / "store.sqlite")
    assert path.read_bytes() == before


def full_disk(*_: object) -> NoReturn:
    raise OSError(errno.ENOSPC, "No space left on device")
