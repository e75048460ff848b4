from mmbu_async.report import build_report
from tests.stored_run import MakeRun, Row

RIGHT: Row = {"reply": "x", "judged": True}
WRONG: Row = {"reply": "x", "judged": False}


def test_each_row_is_under_the_first_thing_that_went_wrong_with_it(make_run: MakeRun) -> None:
    rows = [
        *[RIGHT] * 3,
        WRONG,
        {**RIGHT, "how": "field"},
        {**WRONG, "how": "untagged"},
        {**WRONG, "how": "untagged", "finish": "length"},
        {**RIGHT, "how": "untagged", "finish": "length"},
        {**WRONG, "finish": "refusal", "committed": ""},
        {"reply": "x", "committed": " \n", "correct": False},
        {**RIGHT, "how": "fallback", "detail": {"guess": True}},
        {**WRONG, "judged": None, "finish": "length"},
        {"failures": ["timeout"]},
        {},
        {"reply": "x", "ungraded": True},
    ]
    report = build_report(*make_run(rows))
    assert [(one.name, one.n, one.right, one.open) for one in report.fates] == [
        ("tag", 4, 3, 0),
        ("field", 1, 1, 0),
        ("untagged", 1, 0, 0),
        ("guessed", 1, 1, 0),
        ("empty", 1, 0, 0),
        ("truncated", 2, 1, 0),
        ("refused", 1, 0, 0),
        ("unjudged", 1, 0, 1),
        ("failed", 1, 0, 1),
        ("pending", 1, 0, 1),
    ]
    assert sum(one.n for one in report.fates) == report.overall.n


def test_a_run_without_rows_has_no_fates(make_run: MakeRun) -> None:
    assert build_report(*make_run([RIGHT], limit=0)).fates == ()


def test_a_reply_that_was_never_scored_is_unjudged(make_run: MakeRun) -> None:
    (found,) = build_report(*make_run([RIGHT], scored=False)).fates
    assert found.name == "unjudged"
