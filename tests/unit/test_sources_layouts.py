"""Local copies in the layouts that the field's benchmarks have, built here and opened by their DataSpec."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import random
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmbu_async.errors import ConfigError, DataError, ImageError
from mmbu_async.model import DataSpec, ImageRef
from mmbu_async.sources import LocalFolder, Source, open_data

PMC_VQA = DataSpec(
    hub="someone/PMC-VQA",
    split="test",
    tables=("test_clean.csv",),
    image_columns=("Figure_path",),
    image_folders=("images", ""),
    archives=("images.zip",),
)
MMMU = DataSpec(
    hub="MMMU/MMMU",
    configs=("Accounting", "Biology"),
    split="validation",
    tables=("*/validation-*.parquet",),
    image_columns=tuple(f"image_{n}" for n in range(1, 8)),
)
GMAI = DataSpec(hub="a/GMAI", tables=("*.tsv",), image_columns=("image",))
SLAKE = DataSpec(
    hub="a/SLAKE",
    tables=("test.json",),
    image_columns=("img_name",),
    image_folders=("imgs",),
    archives=("*.zip",),
)


def picture(seed: int, size: int = 3000) -> bytes:
    return b"\xff\xd8\xff" + random.Random(seed).randbytes(size)


def pmc_vqa(folder: Path, figures: list[str], members: dict[str, bytes]) -> Source:
    with (folder / "test_clean.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["Figure_path", "Question", "Choice A", "Answer_label"])
        writer.writerows([figure, f"What is in {figure}?", " A:a cell ", "A"] for figure in figures)
    with zipfile.ZipFile(folder / "images.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return open_data(str(folder), PMC_VQA)


def mmmu(folder: Path) -> Source:
    for subject, rows in (("Biology", 3), ("Accounting", 2)):
        (folder / subject).mkdir()
        table: dict[str, list[Any]] = {"id": [f"validation_{subject}_{n + 1}" for n in range(rows)]}
        for number in range(1, 8):
            table[f"image_{number}"] = [
                {"bytes": picture(100 * number + n), "path": f"{n}.png"}
                if number == 1 or (number, n) in ((3, 0), (2, 1), (3, 1))
                else None
                for n in range(rows)
            ]
        image = pa.struct({"bytes": pa.binary(), "path": pa.string()})
        schema = pa.schema({"id": pa.string(), **{f"image_{n}": image for n in range(1, 8)}})
        file = folder / subject / "validation-00000-of-00001.parquet"
        pq.write_table(pa.Table.from_pydict(table, schema), file)
    return open_data(str(folder), MMMU)


# ---------------------------------------------------------------- MMMU: Parquet, a folder a subject


def test_parquet_with_several_image_columns(tmp_path: Path) -> None:
    source = mmmu(tmp_path)
    rows = list(source.rows())
    assert [row.position for row in rows] == list(range(5))
    assert [row.fields["id"] for row in rows][:3] == [
        "validation_Accounting_1",
        "validation_Accounting_2",
        "validation_Biology_1",
    ]
    assert [row.fields["config"] for row in rows] == ["Accounting"] * 2 + ["Biology"] * 3
    assert set(rows[0].fields) == {"id", "config"}
    assert rows[0].image_columns == ("image_1", "image_3")
    assert rows[1].image_columns == ("image_1", "image_2", "image_3")
    assert rows[4].image_columns == ("image_1",)
    assert rows[3].where == "Biology/validation-00000-of-00001.parquet, row 2"
    assert rows[3].images[2] == ImageRef(locator="Biology/validation-00000-of-00001.parquet#1#image_3")


def test_the_images_of_a_parquet_table_are_read_by_a_source_opened_anew(tmp_path: Path) -> None:
    """As a resume does: it has nothing but the stored locators."""
    refs = {
        ref.locator: (column, row)
        for row in mmmu(tmp_path).rows()
        for ref, column in zip(row.images, row.image_columns, strict=True)
    }
    again = open_data(str(tmp_path), MMMU)
    for locator, (column, row) in reversed(refs.items()):
        seed = 100 * int(column[-1]) + int(row.fields["id"][-1]) - 1
        assert again.image_problem(ImageRef(locator=locator)) == ""
        assert again.read_image(ImageRef(locator=locator)) == picture(seed)


def test_what_was_found_in_parquet_is_described(tmp_path: Path) -> None:
    source = mmmu(tmp_path)
    assert source.description == f"{tmp_path}/*/validation-*.parquet (2 tables)"
    first, second = source.describe()
    assert first.startswith(
        "table Accounting/validation-00000-of-00001.parquet: 2 rows; images in image_1 (byt"
    )
    assert "3 rows" in second


def test_the_stamp_follows_every_table(tmp_path: Path) -> None:
    stamp = mmmu(tmp_path).stamp
    assert open_data(str(tmp_path), MMMU).stamp == stamp
    file = tmp_path / "Biology" / "validation-00000-of-00001.parquet"
    pq.write_table(pq.read_table(file).slice(0, 2), file)
    assert open_data(str(tmp_path), MMMU).stamp != stamp
    (tmp_path / "Biology").rename(tmp_path / "Chemistry")
    assert len({stamp, open_data(str(tmp_path), MMMU).stamp}) == 2


def test_hidden_folders_hold_no_tables(tmp_path: Path) -> None:
    mmmu(tmp_path)
    hidden = tmp_path / ".cache"
    hidden.mkdir()
    (hidden / "validation-00000-of-00001.parquet").write_bytes(b"not a table")
    assert len(list(open_data(str(tmp_path), MMMU).rows())) == 5


# ---------------------------------------------------------------- PMC-VQA: CSV and images.zip


def test_a_csv_with_an_archive_beside_it(tmp_path: Path) -> None:
    members = {f"images/PMC{n}.jpg": picture(n) for n in range(20)}
    figures = [f"PMC{n}.jpg" for n in (3, 3, *range(20))]
    source = pmc_vqa(tmp_path, figures, members)
    rows = list(source.rows())
    assert [row.images[0].locator for row in rows] == figures
    assert rows[0].fields["Choice A"] == " A:a cell ", "stripping is the benchmark's business"
    assert [source.image_problem(row.images[0]) for row in rows] == [""] * 22
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(source.read_image, [row.images[0] for row in rows]))
    assert found == [members[f"images/{figure}"] for figure in figures]
    assert source.stamp == hashlib.sha256((tmp_path / "test_clean.csv").read_bytes()).hexdigest()
    assert source.describe() == (
        "table test_clean.csv: rows not counted; images in Figure_path (names of files, or base64 text)",
        "archive images.zip: 20 files",
    )


def test_a_member_that_is_missing_fails_its_row_and_not_the_run(tmp_path: Path) -> None:
    source = pmc_vqa(tmp_path, ["PMC1.jpg", "PMC2.jpg"], {"images/PMC1.jpg": b"x"})
    missing = ImageRef(locator="PMC2.jpg")
    assert source.image_problem(missing) == ""
    with pytest.raises(ImageError) as caught:
        source.read_image(missing)
    assert str(caught.value) == "PMC2.jpg: is neither in images.zip nor a file; complete the archive."


def test_a_file_beside_the_archive_fills_its_gap(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "PMC2.jpg").write_bytes(b"by hand")
    source = pmc_vqa(tmp_path, ["PMC2.jpg"], {"images/PMC1.jpg": b"x"})
    assert source.read_image(ImageRef(locator="PMC2.jpg")) == b"by hand"


def test_the_archive_may_have_been_unpacked(tmp_path: Path) -> None:
    """The rows are the same then, locators included, so that a run can go on."""
    source = pmc_vqa(tmp_path, ["PMC1.jpg"], {"images/PMC1.jpg": b"x"})
    with zipfile.ZipFile(tmp_path / "images.zip") as archive:
        archive.extractall(tmp_path)
    (tmp_path / "images.zip").unlink()
    unpacked = open_data(str(tmp_path), PMC_VQA)
    assert list(unpacked.rows()) == list(source.rows())
    assert unpacked.stamp == source.stamp
    assert unpacked.read_image(ImageRef(locator="PMC1.jpg")) == b"x"


def test_neither_archive_nor_files_is_known_before_the_run(tmp_path: Path) -> None:
    source = pmc_vqa(tmp_path, ["PMC1.jpg"], {})
    (tmp_path / "images.zip").unlink()
    source = open_data(str(tmp_path), PMC_VQA)
    assert source.image_problem(ImageRef(locator="PMC1.jpg")) == (
        "column 'Figure_path' names an image that is not there; add it, or images.zip, or take the row out"
    )


@pytest.mark.parametrize("name", ["../PMC1.jpg", "../../etc/hostname", "/etc/hostname"])
def test_a_name_never_leads_out(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "PMC1.jpg").write_bytes(b"secret")
    source = pmc_vqa(tmp_path / "data", [name], {name: b"evil", f"images/{name}": b"evil"})
    spec = DataSpec(
        hub="a/b", tables=PMC_VQA.tables, image_columns=("Figure_path",), archives=("images.zip",)
    )
    for each in (source, open_data(str(tmp_path / "data"), spec)):
        with pytest.raises(ImageError):
            each.read_image(ImageRef(locator=name))
    assert "leads out of the folder" in open_data(str(tmp_path / "data"), spec).image_problem(
        ImageRef(locator=name)
    )
    assert "2 more have names that lead out of it" in " ".join(source.describe())


def test_an_absolute_name_is_refused_even_where_it_leads_into_the_folder(tmp_path: Path) -> None:
    """It would lead elsewhere on the next machine."""
    pmc_vqa(tmp_path, [], {})
    (tmp_path / "images.zip").unlink()
    (tmp_path / "a.jpg").write_bytes(b"x")
    source = open_data(str(tmp_path), PMC_VQA)
    assert "leads out of the folder" in source.image_problem(ImageRef(locator=str(tmp_path / "a.jpg")))


def test_damage_names_archive_and_member(tmp_path: Path) -> None:
    source = pmc_vqa(tmp_path, ["PMC1.jpg"], {"images/PMC1.jpg": picture(1)})
    content = bytearray((tmp_path / "images.zip").read_bytes())
    content[200] ^= 255
    (tmp_path / "images.zip").write_bytes(content)
    with pytest.raises(ImageError, match=r"images\.zip, images/PMC1\.jpg: is damaged"):
        source.read_image(ImageRef(locator="PMC1.jpg"))


def test_encrypted_members_are_told_before_the_run(tmp_path: Path) -> None:
    pmc_vqa(tmp_path, ["PMC1.jpg"], {"images/PMC1.jpg": b"x"})
    content = bytearray((tmp_path / "images.zip").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1
    (tmp_path / "images.zip").write_bytes(content)
    source = open_data(str(tmp_path), PMC_VQA)
    assert "images.zip holds encrypted" in source.image_problem(ImageRef(locator="PMC1.jpg"))


# ---------------------------------------------------------------- GMAI-MMBench: TSV with base64


def gmai(folder: Path, cells: list[str]) -> Source:
    with (folder / "GMAI_VAL.tsv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t")
        writer.writerow(["index", "question", "A", "image"])
        writer.writerows([n, f"Which\n{n}?", "a &amp; b", cell] for n, cell in enumerate(cells))
    return open_data(str(folder), GMAI)


def test_base64_stays_out_of_the_fields_and_is_read_row_by_row(tmp_path: Path) -> None:
    pictures = [b"\x89PNG\r\n\x1a\n" + picture(1, 200_000), picture(2), b"GIF89a" + picture(3)]
    cells = [base64.b64encode(each).decode() for each in pictures]
    cells[1] = f"data:image/jpeg;base64,{cells[1]}"
    cells[2] = "\n".join(cells[2][at : at + 76] for at in range(0, len(cells[2]), 76))
    source = gmai(tmp_path, cells)
    rows = list(source.rows())
    assert [set(row.fields) for row in rows] == [{"index", "question", "A"}] * 3
    assert rows[0].fields["A"] == "a &amp; b"
    assert rows[0].images[0].locator == "GMAI_VAL.tsv#24#image"
    again = open_data(str(tmp_path), GMAI)
    with ThreadPoolExecutor(4) as pool:
        for number, data in enumerate(pool.map(again.read_image, [row.images[0] for row in rows])):
            assert data == pictures[number]
    assert {again.image_problem(row.images[0]) for row in rows} == {""}


def test_base64_that_is_damaged_fails_its_row(tmp_path: Path) -> None:
    source = gmai(tmp_path, [base64.b64encode(picture(1)).decode()[:-3] + "?"])
    (row,) = source.rows()
    with pytest.raises(ImageError, match=r"GMAI_VAL\.tsv#24#image: is no valid base64 text"):
        source.read_image(row.images[0])


def test_a_long_name_that_begins_like_base64_is_a_name(tmp_path: Path) -> None:
    name = f"Qk{'x' * 150}.png"
    (tmp_path / name).write_bytes(b"file")
    source = gmai(tmp_path, [name])
    (row,) = source.rows()
    assert row.fields["image"] == name
    assert source.read_image(row.images[0]) == b"file"


def test_a_table_that_shrank_is_told(tmp_path: Path) -> None:
    cell = base64.b64encode(picture(1)).decode()
    source = gmai(tmp_path, [cell, cell])
    refs = [row.images[0] for row in source.rows()]
    gmai(tmp_path, [""])
    for ref in refs:
        with pytest.raises(ImageError, match="is not there any more; the table was changed"):
            source.read_image(ref)
    (tmp_path / "GMAI_VAL.tsv").unlink()
    with pytest.raises(ImageError, match="is not there any more"):
        source.read_image(refs[0])


@pytest.mark.parametrize(
    ("cell", "told"),
    [("", "column 'image' is empty"), ("17", "names an image that is not there"), ("x" * 9000, "is no path")],
)
def test_a_cell_that_is_no_image_is_told(tmp_path: Path, cell: str, told: str) -> None:
    source = gmai(tmp_path, [cell])
    (row,) = source.rows()
    assert told in source.image_problem(row.images[0])


# ---------------------------------------------------------------- JSON lists, lists of images, several tables


def test_a_json_list_with_a_folder_of_images(tmp_path: Path) -> None:
    (tmp_path / "imgs" / "xmlab0").mkdir(parents=True)
    (tmp_path / "imgs" / "xmlab0" / "source.jpg").write_bytes(b"x")
    rows = [{"img_name": "xmlab0/source.jpg", "question": "这是什么?", "q_lang": "zh"}]
    (tmp_path / "test.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    source = open_data(str(tmp_path), SLAKE)
    (row,) = source.rows()
    assert row.fields == rows[0]
    assert row.where == "test.json, item 1"
    assert source.read_image(row.images[0]) == b"x"


def test_base64_in_a_json_list_is_refused(tmp_path: Path) -> None:
    rows = [{"img_name": base64.b64encode(picture(1)).decode()}]
    (tmp_path / "test.json").write_text(json.dumps(rows), encoding="utf-8")
    with pytest.raises(DataError, match=r"test\.json, item 1: column 'img_name' holds base64 .*JSON Lines"):
        list(open_data(str(tmp_path), SLAKE).rows())


def test_lists_of_images_in_json_lines(tmp_path: Path) -> None:
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(name.encode())
    inside = base64.b64encode(picture(1)).decode()
    lines = [{"images": ["a.png", "b.png"]}, {"images": ["b.png", inside]}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    source = open_data(str(tmp_path), DataSpec(hub="a/b", tables=("t.jsonl",), image_columns=("images",)))
    first, second = source.rows()
    assert [source.read_image(ref) for ref in first.images] == [b"a.png", b"b.png"]
    assert first.image_columns == ("images", "images")
    assert second.images[1].locator == "t.jsonl#31#images[1]"
    assert [source.read_image(ref) for ref in second.images] == [b"b.png", picture(1)]


def test_empty_cells_are_left_out_where_there_are_several_columns(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("q,one,two\nx,a.png,\ny,,\nz,a.png,b.png\n", encoding="utf-8")
    spec = DataSpec(hub="a/b", tables=("t.csv",), image_columns=("two", "one", "three"))
    source = open_data(str(tmp_path), spec)
    rows = list(source.rows())
    assert [row.image_columns for row in rows] == [("one",), (), ("two", "one")]
    assert source.image_problem(rows[0].images[0]).startswith("an image column names an image that is not th")


def test_several_text_tables_of_one_pattern_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / "info" / name).mkdir(parents=True)
        (tmp_path / "info" / name / "qa.json").write_text(f'[{{"image": "{name}.png"}}]', encoding="utf-8")
    source = open_data(
        str(tmp_path), DataSpec(hub="a/b", tables=("info/*/*.json",), image_columns=("image",))
    )
    assert [(row.fields["config"], row.fields["image"], row.where) for row in source.rows()] == [
        ("a", "a.png", "info/a/qa.json, item 1"),
        ("b", "b.png", "info/b/qa.json, item 1"),
    ]
    stamp = source.stamp
    (tmp_path / "info" / "b" / "qa.json").write_text("[]", encoding="utf-8")
    assert LocalFolder(tmp_path, DataSpec(hub="", tables=("info/*/*.json",))).stamp != stamp


def test_a_row_s_own_config_is_kept(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "t.csv").write_text("image,config\nx.png,mine\n", encoding="utf-8")
    source = open_data(str(tmp_path), DataSpec(hub="a/b", tables=("*/t.csv",), image_columns=("image",)))
    assert next(source.rows()).fields["config"] == "mine"


# ---------------------------------------------------------------- what is told when it does not fit


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no test_clean.csv; name the folder that holds one"):
        open_data(str(tmp_path), PMC_VQA)
    (tmp_path / "t.xlsx").touch()
    with pytest.raises(DataError, match=r"is no table of a kind that is read \(\.jsonl, .*\.parquet\)"):
        open_data(str(tmp_path), DataSpec(hub="a/b", tables=("t.xlsx",)))
    with pytest.raises(ConfigError, match=r"is a file; give the folder that holds test_clean.csv"):
        open_data(str(tmp_path / "t.xlsx"), PMC_VQA)
    with pytest.raises(ConfigError, match="is neither an existing folder nor a hub id"):
        open_data("a b", PMC_VQA)


def test_the_columns_that_were_looked_for_are_named(tmp_path: Path) -> None:
    (tmp_path / "test_clean.csv").write_text("figure,question\na.jpg,x\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"test_clean\.csv, line 2: there is no column 'Figure_path'; add it"):
        list(open_data(str(tmp_path), PMC_VQA).rows())
    spec = DataSpec(hub="a/b", tables=PMC_VQA.tables, image_columns=("one", "two"))
    with pytest.raises(DataError, match="line 2: there is none of the columns one, two; add"):
        list(open_data(str(tmp_path), spec).rows())


def test_an_archive_that_cannot_be_read_is_told_at_once(tmp_path: Path) -> None:
    pmc_vqa(tmp_path, ["PMC1.jpg"], {})
    (tmp_path / "images.zip").write_bytes(b"<html>404</html>")
    with pytest.raises(DataError, match=r"images\.zip: is no zip archive that can be read"):
        open_data(str(tmp_path), PMC_VQA)
