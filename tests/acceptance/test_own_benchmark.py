"""A benchmark in a TOML file as its author meets it: each scorer, a kill, a lost file, typing errors."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.program import MINI, Simulated, kill, mmbu, simulator, start, wait_until

ROWS = 6
TOML = """\
name = "mine"
licence = "CC0"

[source]
tables = ["rows.csv"]
image_columns = ["image"]

[columns]
id = "uid"
question = "question"
answer = "truth"
{options}

[prompt]
template = '''{{question}}

{suffix}'''

[scorer]
kind = "{kind}"
{more}

[strata]
columns = ["site"]
"""
OPTIONS = ["ultrasound", "computed tomography", "magnetic resonance imaging"]
NUCLEI = json.loads(json.loads((MINI / "metadata.jsonl").read_text().splitlines()[1])["answer"])


def mask_of(box: list[int], *, size: int = 160) -> str:
    x, y, width, height = box
    counts = [x * size + y, *[height, size - height] * (width - 1), height]
    return json.dumps({"size": [size, size], "counts": [*counts, size * size - sum(counts)]})


KINDS: dict[str, dict[str, Any]] = {
    "choice": {"suffix": "{options}\n\nAnswer with the letter.", "truth": "B", "right": ROWS},
    "judge": {"suffix": "{labels}", "truth": OPTIONS[1], "right": ROWS, "judged": 1},
    "exact": {
        "suffix": "Answer in a few words.",
        "truth": "Computed Tomography",
        "right": ROWS,
        "options": "",
    },
    "number": {
        "suffix": "How many cells are there?",
        "truth": "11",
        "right": ROWS,
        "options": "",
        "more": "tolerance = 4",
        "image": "detect_00.png",
    },
    "boxes": {
        "suffix": "Output format: a bounding box as [x, y, width, height].",
        "truth": json.dumps(NUCLEI),
        "right": ROWS,
        "options": "",
        "image": "detect_00.png",
    },
    "masks": {
        "suffix": "Output format: COCO run lengths as JSON.",
        "truth": mask_of([50, 100, 50, 37]),
        "right": ROWS,
        "options": "",
        "image": "nuclei_00.png",
    },
}


def described(folder: Path, kind: str) -> Path:
    """The file, beside `data` with its rows; a byte order mark, as some editors write one, does no harm."""
    made = KINDS[kind]
    data = folder / "data"
    data.mkdir()
    name = made.get("image", "CT_small.png")
    (data / name).write_bytes((MINI / "images" / name).read_bytes())
    with (data / "rows.csv").open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(["uid", "image", "question", "choices", "truth", "site"])
        for number in range(ROWS):
            question = f"Which technique made picture {number}?"
            writer.writerow(
                [f"u{number}", name, question, json.dumps(OPTIONS), made["truth"], f"site {number % 2}"]
            )
    file_ = folder / "mine.toml"
    values = {"options": 'options = "choices"', "more": "", "kind": kind, **made}
    file_.write_text(TOML.format(**values), encoding="utf-8-sig")
    return file_


def flags(server: Simulated, folder: Path) -> list[str]:
    return ["--name", "r", "--model", "m", "--data", str(folder / "data"), *server.flags()]


def scored(store: Path) -> tuple[int, int, int]:
    """Rows scored, of these right, and replies of the model."""
    with sqlite3.connect(store) as connection:
        rows, right = connection.execute("SELECT count(*), sum(correct) FROM score").fetchone()
        (replies,) = connection.execute("SELECT count(*) FROM call WHERE ok AND judge_id IS NULL").fetchone()
    return rows, right, replies


@pytest.mark.parametrize("kind", KINDS)
def test_each_scorer_from_the_check_to_the_report(tmp_path: Path, kind: str) -> None:
    described(tmp_path, kind)
    checked = mmbu("data", "check", "mine.toml", "--data", "data", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    assert f"{ROWS} of {ROWS} rows" in checked.stdout and "Nothing is wrong." in checked.stdout
    with simulator(tmp_path / "log.jsonl", "--latency", "0.1") as server:
        process = start("run", "mine.toml", *flags(server, tmp_path), "--concurrency", "1", cwd=tmp_path)
        assert wait_until(lambda: len(server.requests()) >= 2, process)
        kill(process)
        done = mmbu("resume", "r", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        model = [one for one in server.requests() if one["role"] == "model"]
        assert ROWS <= len(model) <= ROWS + 1
        judged = [one for one in server.requests() if one["role"] == "judge"]
        assert bool(judged) == bool(KINDS[kind].get("judged"))
    assert scored(tmp_path / "mmbu.sqlite") == (ROWS, KINDS[kind]["right"], ROWS)
    report = mmbu("report", "r", cwd=tmp_path)
    assert "COMPLETE" in report.stdout and "site 1" in report.stdout


def test_a_file_that_is_gone_or_moved(tmp_path: Path) -> None:
    file = described(tmp_path, "choice")
    with simulator(tmp_path / "log.jsonl") as server:
        assert mmbu("run", "mine.toml", *flags(server, tmp_path), cwd=tmp_path).returncode == 0
        asked = len(server.requests())
        moved = file.rename(tmp_path / "moved.toml")
        for command in (["resume", "r"], ["rescore", "r"], ["rejudge", "r"], ["show", "r", "u1"]):
            done = mmbu(*command, cwd=tmp_path)
            assert done.returncode == 2, command
            (line,) = done.stderr.splitlines()
            assert line.startswith(f"error: {file}: there is no such file") and "put it back" in line
            assert "Errno" not in line
        # What needs no rules still works, and the run goes on from the new place.
        for command in (["report", "r"], ["status", "r"], ["export", "r", "--out", "rows.jsonl"]):
            assert mmbu(*command, cwd=tmp_path).returncode == 0, command
        done = mmbu("run", str(moved), *flags(server, tmp_path), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.requests()) == asked
        assert mmbu("rescore", "r", cwd=tmp_path).returncode == 0


def _directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


UNUSABLE: dict[str, tuple[Callable[[Path], Any], str]] = {
    "a folder": (_directory, "mine.toml: the benchmark's file cannot be read (Is a directory)"),
    "another encoding": (
        lambda file: file.write_bytes(file.read_bytes() + "# für".encode("latin-1")),
        "mine.toml, line 27: is not UTF-8 text; save it as UTF-8.",
    ),
    "a mistake": (
        lambda file: file.write_text(file.read_text("utf-8-sig").replace("choice", "chioce")),
        "mine.toml, line",
    ),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_file_that_cannot_be_used(tmp_path: Path, name: str) -> None:
    change, words = UNUSABLE[name]
    change(described(tmp_path, "choice"))
    done = mmbu("data", "check", "mine.toml", "--data", "data", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert words in line and "Errno" not in line and "Traceback" not in line


def test_what_a_newcomer_types_first(tmp_path: Path) -> None:
    described(tmp_path, "choice")
    for arguments, words in (
        (["mine", "--data", "data"], "did you mean the file mine.toml?"),
        (["mine.toml"], "give --data with the one that holds rows.csv"),
        (["mine.toml", "--data", "dta"], "dta: is neither an existing folder nor a hub id"),
        (["mine.toml", "--data", "data/rows.csv"], "data/rows.csv: is a file; give the folder"),
        (["other.toml", "--data", "data"], "other.toml: there is no such file"),
    ):
        done = mmbu("data", "check", *arguments, cwd=tmp_path)
        assert done.returncode == 2
        (line,) = done.stderr.splitlines()
        assert words in line
    rows = (tmp_path / "data" / "rows.csv").read_text(encoding="utf-8-sig")
    (tmp_path / "data" / "rows.csv").write_text(rows.replace("truth", "label", 1))
    done = mmbu("data", "check", "mine.toml", "--data", "data", cwd=tmp_path)
    assert (
        "has no column 'truth', which mine.toml, line 11 names for answer (found uid, image," in done.stderr
    )
