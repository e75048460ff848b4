"""What every form of a comparison has in common, whatever the runs look like."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from mmbu_async.errors import ConfigError
from mmbu_async.report.compare import FLIPS_KEPT, build_comparison
from mmbu_async.report.compare_markdown import comparison_to_markdown
from mmbu_async.report.compare_text import print_comparison
from mmbu_async.report.comparison import Comparison
from mmbu_async.report.flips import COLUMNS, write_flips
from mmbu_async.report.json import to_json
from mmbu_async.store import RunRecord, Store
from tests.compared import make_runs
from tests.edges import EDGES
from tests.hostile import MARK, RUN, broken_tables, hostile_rows, hostile_run, live_markup, steering
from tests.stored_run import MakeRun, Row


def on_terminal(found: Comparison, *, width: int = 80, most: int | None = 6) -> str:
    written = io.StringIO()
    print_comparison(found, Console(file=written, width=width), most=most)
    return written.getvalue()


def hostile_runs(make_run: MakeRun) -> tuple[Store, list[RunRecord]]:
    """The second has the verdicts of the first turned round: every judged row flips."""
    store, first = hostile_run(make_run)
    turned = [
        {**row, "judged": not row["judged"]} if row.get("judged") in (True, False) else row
        for row in hostile_rows()
    ]
    _, second = make_run(
        turned, name=f"{RUN} 2", model=first.model, judge=first.judge.identity if first.judge else None
    )
    return store, [first, second]


@pytest.fixture(params=[*EDGES, "hostile", "three runs"])
def found(request: pytest.FixtureRequest, make_run: MakeRun) -> Comparison:
    if request.param == "hostile":
        store, runs = hostile_runs(make_run)
    elif request.param == "three runs":
        store, runs = make_runs(make_run, "+-+0" * 20, "-+++" * 20, "++--" * 20)
    else:
        edge = EDGES[request.param]
        made = [make_run(edge.rows, **edge.options, name=name) for name in ("first", "second")]
        store, runs = made[0][0], [run for _, run in made]
    return build_comparison(store, runs)


def test_a_terminal_of_80_columns_is_wide_enough(found: Comparison) -> None:
    for most in (6, None):
        text = on_terminal(found, most=most)
        assert max(map(len, text.splitlines())) <= 80
        assert not steering(text)


def test_the_first_line_says_what_is_compared(found: Comparison) -> None:
    assert on_terminal(found, width=200).startswith(found.first_line)
    assert comparison_to_markdown(found).startswith(f"**{found.first_line}**\n")
    assert json.loads(to_json(found))["first_line"] == found.first_line


def test_no_figure_is_nan_or_a_python_none(found: Comparison) -> None:
    for text in (on_terminal(found), comparison_to_markdown(found), to_json(found)):
        assert not re.search(r"\b(nan|NaN|inf|Infinity|None)\b", text)


def test_markdown_is_whole_and_dead(found: Comparison) -> None:
    text = comparison_to_markdown(found)
    assert not broken_tables(text)
    assert not live_markup(text)
    assert not steering(text)


def test_json_has_every_number(found: Comparison) -> None:
    data = json.loads(to_json(found))
    assert data["common_rows"] == found.common_rows
    for pair, written in zip(found.pairs, data["pairs"], strict=True):
        assert (written["wins"], written["losses"], written["p"]) == (pair.wins, pair.losses, pair.p)
        assert len(written["attributes"]) == len(pair.attributes)
        assert written["accuracy"]["difference"]["low"] == pair.accuracy.difference.low


def test_hostile_texts_are_shown(make_run: MakeRun) -> None:
    store, runs = hostile_runs(make_run)
    found = build_comparison(store, runs)
    assert found.pairs[0].wins + found.pairs[0].losses > 10
    for text in (on_terminal(found, width=300, most=None), comparison_to_markdown(found)):
        assert text.count(MARK) > 100
        assert "<script>" in text or "&lt;script&gt;" in text


def test_runs_without_a_common_score_say_so_and_show_no_tables(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "+?", "?+")
    found = build_comparison(store, runs)
    for text in (on_terminal(found), comparison_to_markdown(found)):
        assert "NOTHING TO COMPARE: no row has a score in all 2 runs of mmbu-public." in text
        assert "task family" not in text
        assert "2 rows of all runs without a score in some (1 in a, 1 in b)." in " ".join(text.split())


def test_the_last_line_has_the_outcome(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "-" * 10 + "+", "+" * 10 + "-")
    last = on_terminal(build_comparison(store, runs), width=100).rstrip().splitlines()[-1]
    assert last.startswith("b \u2212 a: accuracy +0.818 (")
    # 11 rows parted, one of them lost: 2 * (1 + 11) / 2 ** 11.
    assert last.endswith("), p 0.012: told from chance at 0.05.")
    store, runs = make_runs(make_run, "+-", "-+", options=[{"name": "c"}, {"name": "d"}])
    text = " ".join(on_terminal(build_comparison(store, runs)).split())
    assert text.endswith("p 1.000: not told from chance at 0.05.")


def test_what_the_rows_could_show_stands_beside(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "+-" * 30 + "-" * 40, "-+" * 30 + "-" * 40)
    text = " ".join(on_terminal(build_comparison(store, runs)).split())
    assert "100 rows, 60.0 % of them won or lost, show a difference of accuracy of 0.214 or more" in text
    assert "(80 % power, alpha 0.05)" in text


def test_attributes_that_say_nothing_new_are_named_only(make_run: MakeRun) -> None:
    def shape(number: int) -> Row:
        value = f"topic {number % 3}"
        return {"strata": {"task": (value,), "metadata_topic": (value,), "VQA_type": ("open",)}}

    store, runs = make_runs(make_run, "+-+-+-", "++++--", shape=shape)
    found = build_comparison(store, runs)
    text = on_terminal(found)
    assert "The same in all rows: VQA_type open." in text
    assert "Not shown twice: metadata_topic has the groups of task topic." in text
    assert comparison_to_markdown(found).count("| topic 1 |") == 2


def test_the_largest_strata_are_shown_and_the_rest_announced(make_run: MakeRun) -> None:
    store, runs = make_runs(
        make_run,
        "+" * 12,
        "-" * 12,
        shape=lambda number: {"strata": {"metadata_stain": (f"stain {number:02}",)}},
    )
    found = build_comparison(store, runs)
    assert "and 6 more; --all shows every one" in on_terminal(found)
    assert "--all" not in on_terminal(found, most=None)


def test_flips_say_how_many_there_are_beside_those_shown(make_run: MakeRun) -> None:
    store, runs = make_runs(make_run, "-" * 30, "+" * 30)
    text = on_terminal(build_comparison(store, runs))
    assert f"Rows that flipped, the first {FLIPS_KEPT} of 30 in dataset order" in text
    assert text.count("nucleolus → nucleus; truth nucleus") == FLIPS_KEPT
    assert "--flips FILE.csv writes every one" in text
    store, runs = make_runs(make_run, "--", "+-", options=[{"name": "c"}, {"name": "d"}])
    text = on_terminal(build_comparison(store, runs))
    assert "Rows that flipped, all 1 in dataset order" in text and "--flips" not in text


def test_all_flips_go_to_a_file(make_run: MakeRun, tmp_path: Path) -> None:
    store, runs = make_runs(make_run, "-" * 30 + "+-0", "+" * 30 + "--+")
    out = tmp_path / "flips.csv"
    assert write_flips(store, runs, out) == 32
    with out.open(newline="", encoding="utf-8") as file:
        head, *lines = csv.reader(file)
    assert tuple(head) == COLUMNS
    assert lines[0] == ["a", "b", "row-0", "classification", "gained", "nucleolus", "nucleus", "nucleus"]
    assert [line[4] for line in lines].count("lost") == 1
    assert lines[-1][5] == ""
    assert [path.name for path in tmp_path.iterdir() if "flips" in path.name] == ["flips.csv"]


def test_hostile_flips_run_nothing_in_a_spreadsheet(make_run: MakeRun, tmp_path: Path) -> None:
    store, runs = hostile_runs(make_run)
    out = tmp_path / "flips.csv"
    count = write_flips(store, runs, out)
    with out.open(newline="", encoding="utf-8") as file:
        lines = list(csv.reader(file))
    assert len(lines) == count + 1
    assert not any(
        cell.startswith(("=", "+", "-", "@", "\t", "\r")) or "\x00" in cell for line in lines for cell in line
    )


@pytest.mark.parametrize("name", ["flips.txt", "missing/flips.csv"])
def test_a_file_that_cannot_be_is_refused(name: str, make_run: MakeRun, tmp_path: Path) -> None:
    store, runs = make_runs(make_run, "-", "+")
    with pytest.raises(ConfigError, match=r"end in \.csv|cannot be written"):
        write_flips(store, runs, tmp_path / name)
    assert not (tmp_path / name).exists()
