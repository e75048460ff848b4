"""Bad copies of the further benchmarks: a sentence that names the place, or a handling that is stated."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.acceptance.program import MINI, mmbu, simulator

CT = (MINI / "images" / "CT_small.png").read_bytes()
RETINA = (MINI / "images" / "retina.jpg").read_bytes()
ROWS = 4
HEADER = ["Figure_path", "Question", "Answer", "Choice A", "Choice B", "Choice C", "Choice D", "Answer_label"]


def pmc_rows() -> list[list[str]]:
    choices = [f" {letter}:option {letter} " for letter in "ABCD"]
    return [
        [f"{number}.png", f"Which, number {number}?", "option B", *choices, "B"] for number in range(ROWS)
    ]


def pmc_vqa(folder: Path, rows: list[list[str]] | None = None, encoding: str = "utf-8") -> Path:
    folder.mkdir()
    with (folder / "test_clean.csv").open("w", newline="", encoding=encoding) as file:
        csv.writer(file).writerows([HEADER, *(pmc_rows() if rows is None else rows)])
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(ROWS):
            archive.writestr(f"images/{number}.png", CT)
    return folder


def with_cell(column: str, value: str) -> list[list[str]]:
    rows = pmc_rows()
    rows[1][HEADER.index(column)] = value
    return rows


def mmmu(folder: Path, **changes: Any) -> Path:
    row = {
        "id": "validation_Art_1",
        "question": "What is <image 1>?",
        "options": "['a line', 'a dot']",
        "explanation": "",
        "image_1": {"bytes": CT, "path": "1.png"},
        **{f"image_{place}": None for place in range(2, 8)},
        "img_type": "['Paintings']",
        "answer": "A",
        "topic_difficulty": "Easy",
        "question_type": "multiple-choice",
        "subfield": "Drawing",
    } | changes
    table = folder / "Art" / "validation-00000-of-00001.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row]), table)
    return folder


def damage(folder: Path, number: int) -> None:
    """One byte of a member's packed data turned round: the directory still says all is well."""
    file = folder / "images.zip"
    with zipfile.ZipFile(file) as archive:
        member = archive.getinfo(f"images/{number}.png")
    data = bytearray(file.read_bytes())
    data[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 0xFF
    file.write_bytes(data)


SENTENCES: dict[str, tuple[str, Callable[[Path], Path], tuple[str, ...]]] = {
    "CSV in Latin-1": (
        "pmc-vqa",
        lambda folder: pmc_vqa(folder, with_cell("Question", "Größe?"), "latin-1"),
        ("test_clean.csv, line 3", "is no UTF-8 text", "iconv -f cp1252 -t utf-8"),
    ),
    "CSV in UTF-16": (
        "pmc-vqa",
        lambda folder: pmc_vqa(folder, encoding="utf-16"),
        ("test_clean.csv, line 1", "iconv -f utf-16 -t utf-8"),
    ),
    "options that are not four": (
        "pmc-vqa",
        lambda folder: pmc_vqa(folder, with_cell("Choice C", " C: ")),
        ("test_clean.csv, line 3", "row 1", "'Choice C' is empty; every row has four options"),
    ),
    "an answer letter out of range": (
        "pmc-vqa",
        lambda folder: pmc_vqa(folder, with_cell("Answer_label", "E")),
        ("test_clean.csv, line 3", "'Answer_label' names a letter beyond its 4 options", "'E'"),
    ),
    "a row with too few columns": (
        "pmc-vqa",
        lambda folder: pmc_vqa(folder, [*pmc_rows()[:2], ["2.png", "Which?"]]),
        ("test_clean.csv, line 4", "has 2 columns where the header names 8"),
    ),
    "a placeholder without its image": (
        "mmmu-val",
        lambda folder: mmmu(folder, question="<image 1> or <image 2>?"),
        ("validation-00000-of-00001.parquet, row 1", "names <image 2>, but column 'image_2' is empty"),
    ),
    "a placeholder in an option without its image": (
        "mmmu-val",
        lambda folder: mmmu(folder, options="['<image 3>', 'x']"),
        ("row 1", "names <image 3>, but column 'image_3' is empty"),
    ),
    "a letter that no option has": (
        "mmmu-val",
        lambda folder: mmmu(folder, answer="C"),
        ("row 1", "column 'answer' is none of the letters of its 2 options", "'C'"),
    ),
    "options that are no list": (
        "mmmu-val",
        lambda folder: mmmu(folder, options="['a', 'b'"),
        ("row 1", "column 'options' looks like a list"),
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_what_cannot_be_used_is_a_sentence(tmp_path: Path, name: str) -> None:
    benchmark, build, words = SENTENCES[name]
    build(tmp_path / "data")
    done = mmbu("data", "check", benchmark, "--data", "data", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    for word in words:
        assert word in line
    run = mmbu("run", benchmark, "--model", "m", "--data", "data", cwd=tmp_path)
    assert (run.returncode, run.stderr) == (2, done.stderr), "a run says the same before any call"


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path: Path) -> None:
    pmc_vqa(tmp_path / "data", encoding="utf-8-sig")
    done = mmbu("data", "check", "pmc-vqa", "--data", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"{ROWS} of {ROWS} rows" in done.stdout and "archive images.zip: 4 files" in done.stdout


def test_a_damaged_or_missing_member_fails_its_row_and_nothing_else(tmp_path: Path) -> None:
    rows = pmc_rows()
    rows[2][0] = "missing.png"
    pmc_vqa(tmp_path / "data", rows)
    damage(tmp_path / "data", 1)
    done = mmbu("data", "check", "pmc-vqa", "--data", "data", cwd=tmp_path)
    assert done.returncode == 2
    assert "2 images cannot be sent; their rows would fail" in done.stdout
    assert "images/1.png: is damaged" in done.stdout and "missing.png" in done.stdout
    with simulator(tmp_path / "log.jsonl") as server:
        run = mmbu(
            "run", "pmc-vqa", "--name", "r", "--model", "m", "--data", "data", *server.flags(), cwd=tmp_path
        )
        assert run.returncode == 3
        assert "INCOMPLETE: 2 of 4 rows without a score (2 failed)." in run.stdout
        assert len(server.requests()) == ROWS - 2
        # With a whole archive the rest is bought, and nothing twice.
        with zipfile.ZipFile(tmp_path / "data" / "images.zip", "w") as archive:
            for name in ("0", "1", "2", "3", "missing"):
                archive.writestr(f"images/{name}.png", CT)
        done = mmbu("resume", "r", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert len(server.requests()) == ROWS


def test_an_archive_that_is_none(tmp_path: Path) -> None:
    pmc_vqa(tmp_path / "data")
    (tmp_path / "data" / "images.zip").write_bytes(b"PK\x03\x04 cut off")
    done = mmbu("data", "check", "pmc-vqa", "--data", "data", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "images.zip: is no zip archive that can be read" in line and "get it again" in line


def test_an_image_without_a_placeholder_is_told_and_sent_first(tmp_path: Path) -> None:
    mmmu(tmp_path / "data", image_2={"bytes": RETINA, "path": "2.jpg"})
    done = mmbu("data", "check", "mmmu-val", "--data", "data", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1  an image has no placeholder; it is put before the question" in done.stdout
    with simulator(tmp_path / "log.jsonl") as server:
        run = mmbu("run", "mmmu-val", "--model", "m", "--data", "data", *server.flags(), cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        (request,) = server.requests()
    assert [image["media_type"] for image in request["pictures"]] == ["image/jpeg", "image/png"]


def test_entities_and_line_ends_are_kept_in_store_and_export(tmp_path: Path) -> None:
    rows = with_cell("Choice B", " B:p &lt; 0.05\nand &amp;c. ")
    rows[1][HEADER.index("Question")] = "Is p &lt; 0.05?\n(two lines)"
    pmc_vqa(tmp_path / "data", rows)
    with simulator(tmp_path / "log.jsonl") as server:
        run = mmbu(
            "run", "pmc-vqa", "--name", "r", "--model", "m", "--data", "data", *server.flags(), cwd=tmp_path
        )
        assert run.returncode == 0, run.stderr
    assert mmbu("export", "r", "--out", "rows.jsonl", cwd=tmp_path).returncode == 0
    exported = [
        json.loads(line) for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    assert exported[1]["question"] == "Is p &lt; 0.05?\n(two lines)"
    assert exported[1]["options"][1] == "p &lt; 0.05\nand &amp;c."
    shown = mmbu("show", "r", "1", cwd=tmp_path)
    assert "B) p &lt; 0.05\nand &amp;c.\nC) option C" in shown.stdout
