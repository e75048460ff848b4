"""Base and adapted models: the file that pairs them, win rates, and the line through them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from mmbu_async import api
from mmbu_async.errors import ConfigError, DataError, MmbuError, RunNotFoundError
from mmbu_async.report.adaptations import Adaptations
from mmbu_async.report.adaptations_forms import adaptations_to_markdown, print_adaptations
from mmbu_async.report.json import to_json
from mmbu_async.report.pairs_file import read_pairs
from tests.compared import make_runs, rows
from tests.hostile import RUN, broken_tables, live_markup, steering
from tests.stored_run import CONFIG, MakeRun

HEAD = "base,adapted,training_size\n"
CURRENT = [{"config": {**CONFIG, "benchmark": "mmbu-public"}}] * 8


def written(folder: Path, text: str | bytes) -> Path:
    file = folder / "pairs.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def built(make_run: MakeRun, folder: Path, pairs: str, *outcomes: str) -> Adaptations:
    store, _ = make_runs(make_run, *outcomes, options=CURRENT)
    return api.compare_pairs(written(folder, HEAD + pairs), store=store.path)


def refused(folder: Path, text: str | bytes) -> str:
    with pytest.raises(ConfigError) as caught:
        read_pairs(written(folder, text))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_win_rates_and_the_line_through_them(make_run: MakeRun, tmp_path: Path) -> None:
    # Ten rows each: the base has the first right, b wins 1, c wins 2 and loses 1, d wins 4.
    found = built(
        make_run,
        tmp_path,
        "a,b,1000000\na,c,2000000\na,d,4e6\n",
        "+---------",
        "++--------",
        "-++-------",
        "+++++-----",
    )
    assert [(pair.adapted, pair.n, pair.wins, pair.losses) for pair in found.pairs] == [
        ("b", 10, 1, 0),
        ("c", 10, 2, 1),
        ("d", 10, 4, 0),
    ]
    assert [pair.win_rate for pair in found.pairs] == [10.0, 20.0, 40.0]
    assert [pair.loss_rate for pair in found.pairs] == [0.0, 10.0, 0.0]
    assert [pair.accuracy_difference for pair in found.pairs] == [0.1, 0.1, 0.4]
    assert [(pair.ties_right, pair.ties_wrong) for pair in found.pairs] == [(1, 8), (0, 7), (1, 5)]
    # 10, 20 and 40 per cent over 1, 2 and 4 millions lie on y = 10 x.
    assert found.fit is not None
    assert [found.fit.slope, found.fit.intercept] == pytest.approx([10, 0], abs=1e-9)
    assert found.fit.r_squared == pytest.approx(1)
    # Four heads of four, on either side: 2 / 16; three tests.
    assert (found.pairs[2].p, found.pairs[2].p_holm) == (0.125, 0.375)
    assert found.fit_text.startswith("win rate = 10.00 x size ")


def test_a_line_that_does_not_meet_every_point(make_run: MakeRun, tmp_path: Path) -> None:
    pairs = "a,b,0\na,c,1000000\na,d,2000000\n"
    found = built(make_run, tmp_path, pairs, "-----", "-----", "++---", "+----")
    # 0, 40 and 20 per cent over 0, 1 and 2: slope 10, intercept 10, residuals -10, 20, -10 of 800 in all.
    assert found.fit is not None
    assert [found.fit.slope, found.fit.intercept] == pytest.approx([10, 10])
    assert found.fit.r_squared == pytest.approx(1 - 600 / 800)
    assert found.fit.p is not None and found.fit.slope_low is not None
    assert "win rate = 10.00 x size + 10.00" in found.fit_text
    assert "R² = 0.25; slope 95 % CI \u2212" in found.fit_text


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ("a,b,5\n", "1 pair has rows to compare"),
        ("a,b,5\na,c,5\n", "all pairs have the same training size"),
    ],
)
def test_where_no_line_can_be_drawn(pairs: str, why: str, make_run: MakeRun, tmp_path: Path) -> None:
    found = built(make_run, tmp_path, pairs, "+-", "++", "--")
    assert found.fit is None
    assert found.fit_text == f"No line: {why}."


def test_two_points_have_no_interval(make_run: MakeRun, tmp_path: Path) -> None:
    found = built(make_run, tmp_path, "a,b,5\na,c,7\n", "--", "++", "--")
    assert found.fit is not None
    assert found.fit_text.endswith("two points make any line, so that the slope has no interval.")


def test_rows_that_are_not_compared_are_said(make_run: MakeRun, tmp_path: Path) -> None:
    found = built(make_run, tmp_path, "a,b,5\n", "++?-", "+-++")
    (pair,) = found.pairs
    assert (pair.n, pair.base_left_out, pair.adapted_left_out) == (3, 1, 1)
    assert found.notes == (
        "b and a are compared over 3 rows with a score in both; left out: 1 of b, 1 of a.",
        "a, b: official settings.",
    )


def test_a_pair_without_rows_is_in_no_fit(make_run: MakeRun, tmp_path: Path) -> None:
    found = built(make_run, tmp_path, "a,b,5\na,c,7\n", "+-", "??", "++")
    assert (found.pairs[0].win_rate, found.pairs[0].accuracy_difference, found.fit) == (None, None, None)
    assert "1 pair is in no fit for want of rows in common." in found.notes


def test_every_form_is_whole(make_run: MakeRun, tmp_path: Path) -> None:
    named = {**CURRENT[0], "name": RUN}
    store, _ = make_runs(make_run, "+-" * 10, "++" * 10, options=[CURRENT[0], named])
    found = api.compare_pairs(written(tmp_path, f'{HEAD}a,"{RUN}",1500000\n'), store=store.path)
    text = io.StringIO()
    print_adaptations(found, Console(file=text, width=80))
    markdown = adaptations_to_markdown(found)
    assert max(map(len, text.getvalue().splitlines())) <= 80
    assert not steering(text.getvalue()) and not steering(markdown)
    assert not broken_tables(markdown) and not live_markup(markdown)
    assert " 50.0 " in text.getvalue() and "1,500,000" in markdown
    assert json.loads(to_json(found))["pairs"][0]["wins"] == 10


# ---------------------------------------------------------------- what is wrong with a file


def test_columns_in_any_order_and_others_beside_them(tmp_path: Path) -> None:
    text = "\ufeffnote, Training_Size ,adapted,base\n,1.5e6, b , a \n\n,0,c,a\n"
    one, two = read_pairs(written(tmp_path, text))
    assert (one.line, one.base, one.adapted, one.training_size) == (2, "a", "b", 1_500_000)
    assert (two.line, two.training_size) == (4, 0)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_whatever_a_spreadsheet_writes(separator: str, encoding: str, tmp_path: Path) -> None:
    text = (HEAD + "ä,b,7\n").replace(",", separator)
    (pair,) = read_pairs(written(tmp_path, text.encode(encoding)))
    assert (pair.base, pair.adapted, pair.training_size) == ("ä", "b", 7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("base,adapted\na,b\n", "line 1: has no column training_size; the header is"),
        ("a;b\n", "line 1: has no column base and no column adapted and no column training_size"),
        ("", "line 1: has no column base"),
        ("base,base,adapted,training_size\n", "line 1: has column base twice"),
        (HEAD, "has no pairs"),
        (HEAD + "a,b,1\na,,2\n", "line 3: column adapted is empty"),
        (HEAD + "a,b\n", "line 2: column training_size is empty"),
        (HEAD + "a,a,1\n", "line 2: columns base and adapted name the same run, 'a'"),
        (HEAD + "a,b,1\na,b,2\n", "line 3: has the pair of line 2 once more"),
        (HEAD + 'a,"b,1\n', "is no CSV"),
        (b"base\xff", "is no UTF-8 text (at byte 4)"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str | bytes, said: str, tmp_path: Path) -> None:
    assert said in refused(tmp_path, text)


@pytest.mark.parametrize("size", ["many", "nan", "inf", "-1", "1_000", "1.000.000"])
def test_a_size_that_is_no_number_of_rows(size: str, tmp_path: Path) -> None:
    assert f"line 2: column training_size holds '{size}'" in refused(tmp_path, f"{HEAD}a,b,{size}\n")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"--pairs .*cannot be read \(No such file"):
        read_pairs(tmp_path / "pairs.csv")


def test_runs_that_are_not_there_or_not_alike_are_named_with_their_line(
    make_run: MakeRun, tmp_path: Path
) -> None:
    store, _ = make_runs(make_run, "+", "+", options=CURRENT)
    make_run(rows("+-"), name="longer", **CURRENT[0])
    make_run(rows("++"), name="longer 2", **CURRENT[0])

    def said(pairs: str, kind: type[MmbuError]) -> str:
        with pytest.raises(kind) as caught:
            api.compare_pairs(written(tmp_path, HEAD + pairs), store=store.path)
        assert caught.value.exit_code == 2
        return str(caught.value)

    assert "pairs.csv, line 3: " in said("a,b,1\na,x,1\n", RunNotFoundError)
    assert "pairs.csv, line 2: runs 'a' and 'longer' are over different content" in said(
        "a,longer,1\n", DataError
    )
    other = said("a,b,1\nlonger,longer 2,1\n", DataError)
    assert "line 3: run 'longer' is over other rows than 'a' in line 2" in other
