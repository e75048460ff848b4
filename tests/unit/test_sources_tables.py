"""Text tables as people save them: encodings, quoting, huge fields, JSON of several shapes."""

from __future__ import annotations

import csv
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.errors import DataError
from mmbu_async.sources.tables import record_at, records, unit


def saved(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def fields(path: Path) -> list[dict[str, Any]]:
    return [record.fields for record in records(path, path.name)]


# ---------------------------------------------------------------- shapes


def test_a_csv_keeps_quoted_line_ends_and_entities_as_they_are(tmp_path: Path) -> None:
    rows = [
        ["Figure_path", "Question", "Choice A"],
        ["PMC1.jpg", 'What is "it",\r\nafter all?', " A:5 &lt; 6 &amp; more "],
        ["PMC2.jpg", "Größe?", "x" * 300_000],
    ]
    with (tmp_path / "test.csv").open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(rows)
    assert [list(row.values()) for row in fields(tmp_path / "test.csv")] == rows[1:]
    assert list(fields(tmp_path / "test.csv")[0]) == rows[0]


@pytest.mark.parametrize("name", ["t.json", "t.JSON"])
def test_a_json_list(tmp_path: Path, name: str) -> None:
    rows = [{"img_name": "xmlab0/source.jpg", "answer": "肺", "n": 1}, {"n": None}]
    path = saved(tmp_path, name, "\ufeff \n" + json.dumps(rows, indent=1, ensure_ascii=False))
    assert fields(path) == rows
    assert [record.number for record in records(path, name)] == [1, 2]
    assert unit(path) == "item"


def test_json_lines_may_be_called_json(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.json", '{"a": 1}\n{"a": 2}\n')
    assert fields(path) == [{"a": 1}, {"a": 2}]
    assert unit(path) == "line"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.jsonl"])
def test_each_record_can_be_read_by_itself(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    texts = ["ä" * 10, "two\r\nlines", 'quo"ted', "", "last"]
    if name == "t.jsonl":
        lines = [json.dumps({"a": text, "b": n}, ensure_ascii=False) for n, text in enumerate(texts)]
        path.write_text("\ufeff" + "\n\n".join(lines), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.writer(file, delimiter="," if name == "t.csv" else "\t")
            writer.writerows([["a", "b"], *([text, n] for n, text in enumerate(texts)), []])
    found = list(records(path, name))
    assert [record.fields["a"] for record in found] == texts
    for record in reversed(found):
        assert record_at(path, name, record.offset) == record.fields
    assert record_at(path, name, path.stat().st_size) is None


def test_memory_does_not_grow_with_the_records(tmp_path: Path) -> None:
    with (tmp_path / "t.csv").open("w", encoding="utf-8") as file:
        file.write("a,b\n")
        file.writelines(f'{n},"{"x" * 1000}"\n' for n in range(3000))
    tracemalloc.start()
    try:
        count = sum(1 for _ in records(tmp_path / "t.csv", "t.csv"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 3000
    assert peak < 500_000, "3 MB of text passed through"


# ---------------------------------------------------------------- encodings


@pytest.mark.parametrize(
    ("encoding", "text", "told"),
    [
        (
            "cp1252",
            "a,b\n1,”smart“ quotes\n",
            r"t.csv, line 2: .*byte 0x94 at offset 6 .* if it is cp1252, conv",
        ),
        ("cp1252", "a,b\n1,médecin de façade\n", "if it is cp1252"),
        ("latin-1", "a,b\n1,5 µm\n", "if it is cp1252"),
        ("gb18030", "a,b\n1,图中显示的是什么器官\n", r"`iconv -f gb18030 -t utf-8`"),
        ("utf-16", "a,b\n1,2\n", r"line 1: .*byte 0xff at offset 0 .* if it is utf-16"),
    ],
)
def test_another_encoding_is_refused_with_place_and_guess(
    tmp_path: Path, encoding: str, text: str, told: str
) -> None:
    path = saved(tmp_path, "t.csv", text.encode(encoding))
    with pytest.raises(DataError, match=told):
        fields(path)


def test_the_place_counts_the_byte_order_mark(tmp_path: Path) -> None:
    for name, content in (("t.csv", b"a,\xff\n"), ("t.json", b'["\xff"]')):
        path = saved(tmp_path, name, b"\xef\xbb\xbf" + content)
        with pytest.raises(DataError, match=rf"{name}, line 1: .*byte 0xff at offset 5 of the file"):
            fields(path)


def test_the_line_in_a_json_list_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, "t.json", b'[\n{"a": 1},\n{"a": "\xe9"}]')
    with pytest.raises(DataError, match=r"t\.json, line 3: is no UTF-8 text"):
        fields(path)


# ---------------------------------------------------------------- broken tables


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("t.csv", "a,b\n1\n", "t.csv, line 2: has 1 columns where the header names 2; repair the line"),
        ("t.csv", 'a,b\n1,"x\ny"\n1,2,3\n', "t.csv, line 4: has 3 columns"),
        ("t.csv", "a,b,a\n", "names column 'a' twice"),
        ("t.csv", "", "has no header line"),
        ("t.csv", 'a,b\n1,"never closed\n', "t.csv, line 2: is not quoted as it must be"),
        ("t.csv", "a,b\r1,2\r", "is not quoted as it must be .*new-line"),
        ("t.json", '[{"a": 1},]', r"t.json, line 1: is no valid JSON"),
        ("t.json", '[{"a": 1}, 7]', r"t.json, item 2: is no JSON object; write a list of objects"),
        ("t.json", "[" * 100_000, "t.json: cannot be read as JSON"),
        ("t.json", '{"rows": [\n', "t.json, line 1: is no valid JSON"),
    ],
)
def test_a_broken_table_is_named(tmp_path: Path, name: str, text: str, told: str) -> None:
    path = saved(tmp_path, name, text)
    with pytest.raises(DataError, match=told):
        fields(path)


def test_a_table_that_goes_away_is_named(tmp_path: Path) -> None:
    for name in ("t.json", "t.csv"):
        with pytest.raises(DataError, match=f"{name}: cannot be read"):
            fields(tmp_path / name)
    path = saved(tmp_path, "t.json", "[]")
    rows = records(path, "t.json")
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        next(rows)
