import pytest

from mmbu_async.model import Usage
from mmbu_async.report import build_report, to_markdown
from mmbu_async.report.replies import fate_table, latency, reply_table
from tests.stored_run import MakeRun, Row

RIGHT: Row = {"reply": "x", "judged": True}
WRONG: Row = {"reply": "x", "judged": False}


def test_points_lost_add_up_to_what_accuracy_misses(make_run: MakeRun) -> None:
    rows = [RIGHT] * 6 + [WRONG] * 2 + [{**WRONG, "how": "untagged"}, {**WRONG, "finish": "refusal"}]
    report = build_report(*make_run(rows))
    found = fate_table(report)
    lines = {row[0]: dict(zip(found.columns, row[1:], strict=True)) for row in found.rows}
    assert {name: line["points lost"] for name, line in lines.items()} == {
        "answer tag": "0.200",
        "untagged: whole reply taken": "0.100",
        "refused": "0.100",
    }
    assert lines["answer tag"]["rows"] == "8*"
    assert lines["answer tag"]["accuracy"] == "0.750"
    assert sum(float(line["points lost"]) for line in lines.values()) == pytest.approx(
        1 - (report.overall.accuracy.value or 0)
    )


def test_time_and_tokens_of_replies_are_stated(make_run: MakeRun) -> None:
    usage = Usage(input_tokens=1200, output_tokens=40)
    found = reply_table(build_report(*make_run([{**RIGHT, "usage": usage}] * 3)))
    assert found is not None
    lines = {row[0]: row[1:] for row in found.rows}
    assert lines["Time to the whole reply"] == ("3", "0", *["1.5 s"] * 6)
    assert lines["Time to the first token"][2] == "250 ms"
    assert lines["Input tokens"] == ("3", "0", *["1,200"] * 6)
    assert lines["Reasoning tokens"] == ("3", "3", *["0"] * 6)
    assert "Not known" not in found.note


def test_without_replies_there_is_no_table_of_them(make_run: MakeRun) -> None:
    report = build_report(*make_run([{}, {"failures": ["timeout"]}]))
    assert reply_table(report) is None
    assert "## Where answers were lost" in to_markdown(report)


def test_markdown_has_both_tables(make_run: MakeRun) -> None:
    text = to_markdown(build_report(*make_run([RIGHT, WRONG])))
    assert "## Where answers were lost" in text
    assert "## Time and tokens of a reply" in text


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.0, "0 s"),
        (0.0123, "12.3 ms"),
        (0.9996, "1 s"),
        (1.234, "1.23 s"),
        (61.2, "61.2 s"),
        (1234.5, "1,234 s"),
    ],
)
def test_latencies_have_three_digits(seconds: float, written: str) -> None:
    assert latency(seconds) == written
