"""`mmbu judges`: judges beside each other and beside people, in every form, and the rows that differ."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from mmbu_async import api
from mmbu_async.cli.main import app
from mmbu_async.errors import ConfigError
from mmbu_async.model import Verdict
from mmbu_async.report.judges import build_judges, write_differing
from mmbu_async.report.judges_forms import judges_to_markdown, print_judges
from mmbu_async.report.labels import read_labels
from mmbu_async.stats import cohen_kappa, wilson
from mmbu_async.store import RunRecord, Store, VerdictRecord, Writer
from tests.stored_run import MakeRun

SECOND = {"model": "second", "endpoint": "openai", "max_tokens": 512, "prompt": "p" * 64}
OWN = [True, True, False, False, None, True]
OTHER = [True, False, True, False, True, None]
LABELS = "row_id,label\nrow-0,1\nrow-1,0\nrow-2,0\nrow-3,1\nrow-4,1\nrow-6,1\nrow-5,\n"
"""Row 6 is scored by rule."""


def vote(store: Store, run: RunRecord, said: Sequence[bool | None]) -> None:
    judge = store.judge("second", SECOND, now=1.0).id

    async def write() -> None:
        async with Writer.open(store.path, synchronous="normal") as writer:
            for position, correct in enumerate(said):
                sha = hashlib.sha256(f"row-{position}".encode()).digest()
                word = Verdict(correct=correct, reply="…")
                await writer.write(
                    VerdictRecord(
                        run_id=run.id, sample_key=position + 1, judge_id=judge, verdict=word, prompt_sha=sha
                    )
                )

    asyncio.run(write())


@pytest.fixture
def judged(make_run: MakeRun) -> tuple[Store, RunRecord]:
    rows: list[dict[str, Any]] = [
        {"id": f"row-{n}", "reply": "<answer>x</answer>", "judged": verdict, "family": "cells"}
        for n, verdict in enumerate(OWN)
    ]
    rows.append({"id": "row-6", "reply": "<answer>[1, 2]</answer>", "correct": True})
    store, run = make_run(rows)
    vote(store, run, OTHER)
    return store, run


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    file = tmp_path / "labels.csv"
    file.write_text(LABELS)
    return file


def printed(found: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    print_judges(found, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_judges_beside_people(judged: tuple[Store, RunRecord], labels: Path) -> None:
    found = build_judges(*judged, read_labels(labels)).humans
    assert found is not None
    assert (found.labels, found.right, found.blank, found.by_rule) == (5, 3, 1, 1)
    own, second = found.against
    assert (own.judge, own.n, own.missing, own.accuracy) == ("claude-sonnet-5", 4, 1, 0.5)
    assert (own.true_positives, own.false_positives, own.false_negatives, own.true_negatives) == (1, 1, 1, 1)
    assert own.wilson == wilson(2, 4)
    assert (second.n, second.accuracy) == (5, 0.6)
    confusion = (second.true_positives, second.false_positives, second.false_negatives, second.true_negatives)
    assert confusion == (2, 1, 1, 1)
    expected = cohen_kappa({(True, True): 2, (True, False): 1, (False, True): 1, (False, False): 1})
    assert second.kappa.kappa == pytest.approx(expected.kappa)
    assert found.differing == 3


def test_the_rows_on_which_they_differ(judged: tuple[Store, RunRecord], labels: Path, tmp_path: Path) -> None:
    alone = build_judges(*judged)
    assert (alone.differing, [row.row_id for row in alone.rows]) == (2, ["row-1", "row-2"])
    beside = build_judges(*judged, read_labels(labels))
    assert [row.row_id for row in beside.rows] == ["row-1", "row-2", "row-3"]
    assert beside.rows[2].votes == {"claude-sonnet-5": False, "second": False}
    assert beside.rows[2].human is True
    out = tmp_path / "differ.csv"
    assert write_differing(*judged, out, read_labels(labels)) == 3
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert lines[0] == {
        "row_id": "row-1",
        "task_family": "cells",
        "true_answer": "nucleus",
        "answer": "<answer>x</answer>",
        "human": "0",
        "claude-sonnet-5": "1",
        "second": "0",
    }
    # Filled in it is a file of labels.
    assert write_differing(*judged, out) == 2
    text = out.read_text().replace(",,1,0", ",yes,1,0").replace(",,0,1", ",no,0,1")
    out.write_text(text)
    again = build_judges(*judged, read_labels(out)).humans
    assert again is not None
    assert [one.accuracy for one in again.against] == [1.0, 0.0]
    with pytest.raises(ConfigError, match=r"--disagreements .*\.txt: rows are written as CSV"):
        write_differing(*judged, tmp_path / "differ.txt")


def test_every_form_has_every_number(judged: tuple[Store, RunRecord], labels: Path) -> None:
    found = build_judges(*judged, read_labels(labels))
    text, markdown = printed(found), judges_to_markdown(found)
    for page in (text, markdown):
        for words in (
            "second",
            "0.600",
            "5 rows with a label, 3 of them right",
            "row-3",
            "Against human labels",
        ):
            assert words in page, words
        assert "official settings" in page.lower() or "Unofficial: " in page
    assert "| second | 2 | 1 | 1 | 1 | 0 |" in markdown
    assert max(map(len, text.splitlines())) <= 80


def test_rows_the_run_does_not_have(judged: tuple[Store, RunRecord], labels: Path) -> None:
    labels.write_text("row_id,label\nrow-0,1\nrow-00,1\nnobody,0\n")
    with pytest.raises(ConfigError) as caught:
        build_judges(*judged, read_labels(labels))
    assert f"{labels}, line 3, column row_id: run 'test-run' has no row 'row-00' (nor 1 others" in str(
        caught.value
    )


def test_no_judge_and_one_judge(make_run: MakeRun) -> None:
    none = build_judges(*make_run([{"reply": "x", "correct": True}], judge=None, name="none"))
    assert (none.panel, none.rows) == (None, ())
    assert "No judge has given a verdict" in printed(none)
    assert "No judge has given a verdict" in judges_to_markdown(none)
    one = build_judges(*make_run([{"reply": "x", "judged": True}], name="one"))
    assert one.panel is not None
    assert (one.panel.pairs, one.panel.alpha, one.panel.fleiss) == ((), None, None)
    assert "Judges" in printed(one)


def test_hostile_names_are_shown_and_steer_nothing(make_run: MakeRun) -> None:
    judge = {"model": "a|b\x1b[31m`", "endpoint": "openai", "prompt": "p"}
    rows = [{"id": "=cmd|\x1b[2J", "reply": "x", "judged": True}]
    store, run = make_run(rows, judge=judge)
    sha = hashlib.sha256(b"=cmd|\x1b[2J").digest()
    other = store.judge("second", SECOND, now=1.0).id

    async def write() -> None:
        async with Writer.open(store.path) as writer:
            word = Verdict(correct=False, reply="")
            await writer.write(
                VerdictRecord(run_id=run.id, sample_key=1, judge_id=other, verdict=word, prompt_sha=sha)
            )

    asyncio.run(write())
    found = build_judges(store, run)
    assert found.differing == 1
    for page in (printed(found), judges_to_markdown(found)):
        assert "\x1b" not in page
    assert "a\\|b" in judges_to_markdown(found)


def test_the_command(judged: tuple[Store, RunRecord], labels: Path, tmp_path: Path) -> None:
    store = str(judged[0].path)
    judged[0].close()
    runner = CliRunner()
    shown = runner.invoke(app, ["judges", "test-run", "--store", store, "--labels", str(labels)])
    assert shown.exit_code == 0, shown.output
    assert "Against human labels" in shown.output
    out = tmp_path / "judges.json"
    differ = tmp_path / "d.csv"
    flags = ["--out", str(out), "--disagreements", str(differ), "--labels", str(labels)]
    done = runner.invoke(app, ["judges", "test-run", "--store", store, *flags])
    assert done.exit_code == 0, done.output
    assert "wrote 3 rows to" in done.output
    read = json.loads(out.read_text())
    assert (read["differing"], read["humans"]["against"][1]["accuracy"]) == (3, 0.6)
    with pytest.raises(ConfigError, match="give that file too"):
        api.judges("test-run", store=Path(store), id_column="x")
    refused = runner.invoke(app, ["judges", "test-run", "--store", store, "--format", "xml"])
    assert isinstance(refused.exception, ConfigError)
