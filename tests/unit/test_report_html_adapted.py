"""The page of adapted models: points, the line through them, the table."""

from pathlib import Path

from mmbu_async import api
from mmbu_async.report.html import adaptations_to_html
from tests.compared import make_runs
from tests.hostile import MARK, RUN
from tests.pages import Page, read_page
from tests.stored_run import CONFIG, MakeRun

CURRENT = [{"config": {**CONFIG, "benchmark": "mmbu-public"}}] * 8


def adapted(make_run: MakeRun, folder: Path, pairs: str, *outcomes: str) -> Page:
    store, _ = make_runs(make_run, *outcomes, options=CURRENT)
    file = folder / "pairs.csv"
    file.write_text("base,adapted,training_size\n" + pairs, encoding="utf-8")
    return read_page(adaptations_to_html(api.compare_pairs(file, store=store.path)))


def test_each_pair_is_a_point_and_a_line_of_the_table(make_run: MakeRun, tmp_path: Path) -> None:
    pairs = "a,b,1000000\na,c,2000000\na,d,4e6\n"
    page = adapted(make_run, tmp_path, pairs, "+---------", "++--------", "-++-------", "+++++-----")
    assert "win rate = 10.00 x size + 0.00" in page.text
    assert "2. c from a" in page.text
    (drawing,) = page.svgs
    assert {"1", "2", "3", "win rate, per cent of rows"} <= set(drawing.itertext())
    data = page.csv("win-rates")
    assert [row[1:4] + row[9:10] for row in data[1:]] == [
        ["a", "b", "1000000.0", "10.0"],
        ["a", "c", "2000000.0", "20.0"],
        ["a", "d", "4000000.0", "40.0"],
    ]


def test_one_pair_makes_no_line(make_run: MakeRun, tmp_path: Path) -> None:
    page = adapted(make_run, tmp_path, "a,b,1000000\n", "+-", "++")
    assert "No line: " in page.text
    assert len(page.svgs) == 1


def test_without_rows_in_common_there_is_nothing_to_draw(make_run: MakeRun, tmp_path: Path) -> None:
    page = adapted(make_run, tmp_path, "a,b,1000000\n", "??", "++")
    assert page.svgs == []
    assert "1. b from a" in page.text


def test_names_are_shown_as_text(make_run: MakeRun, tmp_path: Path) -> None:
    make_run([{"reply": "x", "judged": True}], name=RUN, config=CURRENT[0]["config"])
    store, _ = make_run([{"reply": "x", "judged": False}], name="base", config=CURRENT[0]["config"])
    file = tmp_path / "pairs.csv"
    file.write_text(f"base,adapted,training_size\nbase,{RUN},5\n", encoding="utf-8")
    page = read_page(adaptations_to_html(api.compare_pairs(file, store=store.path)))
    assert f"run {MARK} <i>|`[x](y)`" in page.text
