"""Files of human labels, as spreadsheets and programs write them, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from mmbu_async.errors import ConfigError
from mmbu_async.report.labels import Labels, read_labels


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "labels.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def right(found: Labels) -> dict[str, bool]:
    return {row: label.right for row, label in found.by_row.items()}


@pytest.mark.parametrize(
    "text",
    [
        "row_id,label\na,1\nb,0\n",
        "row_id;label\na;true\nb;false\n",
        "row_id\tlabel\na\tYes\nb\tNO\n",
        "ID,Human\r\na,right\r\nb,wrong\r\n",
        'note,correct,id\n"x, y",correct,a\n,incorrect, b \n',
        "id,label\n\na,1.0\n\n,\nb,0.0",
        "\ufeffrow_id,label\na,1\nb,0\n",
        "row_id|label\na|1\nb|0\n".encode("utf-16"),
        'unique_id,label\n"a",1\n"b",0\n',
    ],
)
def test_whatever_a_spreadsheet_writes(tmp_path: Path, text: str | bytes) -> None:
    found = read_labels(written(tmp_path, text))
    assert right(found) == {"a": True, "b": False}


def test_lines_are_those_of_the_file(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, 'row_id,note,label\na,"two\nlines",1\n\nb,,0\nc,,\n'))
    assert {row: label.line for row, label in found.by_row.items()} == {"a": 2, "b": 5}
    assert found.blank == 1


def test_columns_can_be_named(tmp_path: Path) -> None:
    file = written(tmp_path, "case,row_id,label,second\na,x,1,0\nb,y,1,\n")
    found = read_labels(file, id_column="case", label_column="Second")
    assert (right(found), found.blank) == ({"a": False}, 1)
    assert (found.id_column, found.label_column) == ("case", "second")


def test_a_cell_that_no_spreadsheet_runs_is_found_by_its_row(tmp_path: Path) -> None:
    found = read_labels(written(tmp_path, "row_id,label\n'=1+1,1\n-5,0\n"))
    assert found.of("=1+1") is found.by_row["'=1+1"]
    label = found.of("-5")
    assert label is not None and not label.right
    assert found.of("other") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line 1: has no column row_id or id or unique_id; name it with --id-column."),
        ("a,b\nx,1\n", "line 1: has no column row_id or id or unique_id"),
        ("id,x\na,1\n", "line 1: has no column label or human or correct; name it with --label-column."),
        ("id,label,human\na,1,1\n", "line 1: more than one column could be meant (label, human)"),
        ("id,label,label\na,1,1\n", "line 1: more than one column could be meant (label, label)"),
        ("id,label\na,maybe\n", "line 2, column label: 'maybe' is no label; write 1 or 0"),
        ("id,label\na,1\nb,2\n", "line 3, column label: '2' is no label"),
        ("id,label\na,1\na,1\n", "line 3, column id: row 'a' has a label in line 2 already; keep one."),
        ("id,label\n,1\n", "line 2, column id: holds no row id."),
        ('id,label\n"a,1\n', "is no CSV"),
        (b"id,label\n\xff,1\n", "is no UTF-8 text (at byte 9)"),
    ],
)
def test_what_is_wrong_is_named_with_line_and_column(tmp_path: Path, text: str | bytes, words: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_labels(file)
    assert words in str(caught.value)
    assert str(file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_columns_that_do_not_exist_and_files_that_do_not(tmp_path: Path) -> None:
    file = written(tmp_path, "id,label\na,1\n")
    with pytest.raises(ConfigError, match="has no column case; its columns are id, label"):
        read_labels(file, id_column="case")
    with pytest.raises(ConfigError, match=r"--labels .*none\.csv: cannot be read"):
        read_labels(tmp_path / "none.csv")
