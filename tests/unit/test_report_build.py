from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from mmbu_async.model import Usage
from mmbu_async.report import ReportData, build_report, words
from mmbu_async.report.at_work import process_of, said
from mmbu_async.store import LeaseOwner, RunRecord, Store

MakeRun = Callable[..., tuple[Store, RunRecord]]

Row = Mapping[str, Any]

RIGHT: Row = {"reply": "<answer>nucleus</answer>", "committed": "nucleus", "judged": True}
WRONG: Row = {"reply": "<answer>nucleolus</answer>", "committed": "nucleolus", "judged": False}
EMPTY: Row = {"reply": "<answer></answer>", "committed": "", "correct": False}
FAILED: Row = {"failures": ["timeout", "timeout", "bad_request"]}
UNJUDGED: Row = {"reply": "<answer>nucleus</answer>", "judged": None, "judge_reply": "I cannot say."}
PENDING: Row = {}


def of(rows: Sequence[Row], make_run: MakeRun, **settings: Any) -> ReportData:
    return build_report(*make_run(rows, **settings))


def test_figures_have_all_selected_rows_below_the_line(make_run: MakeRun) -> None:
    report = of([RIGHT] * 6 + [WRONG] * 3 + [EMPTY], make_run)
    assert report.complete
    assert report.first_line == "COMPLETE: 10 of 10 rows scored."
    assert report.overall.accuracy.value == 0.6
    assert report.overall.f1.value == 12 / (12 + 3 + 4)  # the empty answer is a miss, no false positive
    assert report.rows.scored == 10
    assert report.rows.right == 6
    assert report.rows.empty == 1


def test_an_incomplete_run_says_so_first_and_gives_bounds(make_run: MakeRun) -> None:
    rows = [RIGHT] * 5 + [WRONG] * 2 + [FAILED, UNJUDGED, PENDING]
    report = of(rows, make_run)
    assert not report.complete
    assert report.first_line == "INCOMPLETE: 3 of 10 rows without a score (1 failed, 1 unjudged, 1 pending)."
    assert report.overall.score is None
    assert report.overall.worst.accuracy.value == 0.5
    assert report.overall.best.accuracy.value == 0.8
    assert (report.rows.failed, report.rows.unjudged, report.rows.pending) == (1, 1, 1)
    assert report.failure_kinds == {"bad_request": 1}
    assert report.failed_calls == {"timeout": 2, "bad_request": 1}


def test_a_row_that_failed_only_for_now_is_pending(make_run: MakeRun) -> None:
    report = of([{"failures": ["timeout"], "unfinished": True}], make_run)
    assert (report.rows.failed, report.rows.pending) == (0, 1)
    assert report.failure_kinds == {}


def test_a_reply_without_score_is_open_and_the_report_says_that_scores_are_old(make_run: MakeRun) -> None:
    report = of([RIGHT, WRONG], make_run, scored=False)
    assert report.rows.unjudged == 2
    assert any("mmbu rescore test-run" in note for note in report.notes)
    assert not any("rescore" in note for note in of([RIGHT], make_run, name="other").notes)


def test_blemishes_of_replies_are_counted(make_run: MakeRun) -> None:
    rows = [
        RIGHT,
        {**WRONG, "how": "untagged", "finish": "length"},
        {**WRONG, "how": "untagged"},
        {**EMPTY, "finish": "refusal"},
        {**RIGHT, "image_scale": 0.5},
        {**EMPTY, "committed": " \n"},
    ]
    rows_found = of(rows, make_run).rows
    assert rows_found.untagged == 2
    assert rows_found.truncated == 1
    assert rows_found.refused == 1
    assert rows_found.empty == 2
    assert rows_found.scaled == 1


def test_families_topics_and_columns_have_figures_of_their_own(make_run: MakeRun) -> None:
    rows = [
        {**RIGHT, "family": "counting", "strata": {"task": ("nuclei", "smear"), "metadata_stain": ("H&E",)}},
        {**WRONG, "family": "counting", "strata": {"task": ("nuclei",)}},
        {**WRONG, "family": "classification"},
    ]
    report = of(rows, make_run)
    assert [(one.name, one.n, one.accuracy.value) for one in report.families] == [
        ("counting", 2, 0.5),
        ("classification", 1, 0.0),
    ]
    found = {
        one.name: [(group.name, group.n, group.right) for group in one.groups] for one in report.attributes
    }
    assert found == {
        "task": [("nuclei", 2, 1), ("smear", 1, 1), (None, 1, 0)],
        "metadata_stain": [("H&E", 1, 1), (None, 2, 0)],
    }


def test_detection_is_summed_over_its_rows(make_run: MakeRun) -> None:
    def boxes(iou: float, tp: int, fp: int, fn: int) -> dict[str, Any]:
        detail = {"max_iou": iou, "offered": tp + fp, "box_tp": tp, "box_fp": fp, "box_fn": fn}
        return {"reply": "x", "correct": iou >= 0.5, "detail": detail, "family": "object detection"}

    found = of([boxes(0.8, 1, 3, 1), boxes(0.4, 0, 1, 2), boxes(0.0, 0, 0, 1), RIGHT], make_run).detection
    assert found is not None
    assert found.rows == 3
    assert found.mean_iou == pytest.approx(0.4)
    assert (found.boxes, found.truths, found.most_boxes, found.no_boxes) == (5, 5, 4, 1)
    assert found.matched_f1.value == 2 / (2 + 4 + 4)


def test_without_detection_rows_there_is_nothing_to_say_of_boxes(make_run: MakeRun) -> None:
    assert of([RIGHT], make_run).detection is None


def test_tokens_money_and_time_are_those_of_all_calls(make_run: MakeRun) -> None:
    rows = [
        {
            **RIGHT,
            "failures": ["rate_limit", "timeout"],
            "cost": 0.25,
            "usage": Usage(input_tokens=10, output_tokens=4),
        },
        {
            **WRONG,
            "cost": None,
            "usage": Usage(input_tokens=5, output_tokens=1, reasoning_tokens=1, cached_tokens=2),
        },
        {**RIGHT, "shared": True, "cost": 0.5, "usage": Usage(reported=False)},
    ]
    report = of(rows, make_run)
    model, judge = report.model_spend, report.judge_spend
    assert (model.calls, model.ok, model.retries, model.rate_limited) == (5, 3, 2, 1)
    assert (model.input_tokens, model.output_tokens) == (15, 5)
    assert (model.reasoning_tokens, model.cached_tokens, model.usage_unreported) == (1, 2, 1)
    assert (model.cost_usd, model.cost_unknown) == (0.75, 1)
    assert (judge.calls, judge.input_tokens) == (2, 400)
    assert report.shared_verdicts == 1
    assert (report.clock.sessions, report.clock.wall_s) == (1, 100.0)
    assert report.clock.rows_per_s == pytest.approx(0.03)


def test_throughput_leaves_out_the_time_of_rejudging(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT] * 10)
    session = _begin(store, run, "rejudge", 5000.0)
    store.end_session(session, "done", now=5900.0)
    clock = build_report(store, run).clock
    assert (clock.sessions, clock.wall_s) == (2, 1000.0)
    assert clock.rows_per_s == pytest.approx(0.1)
    assert words.wall(clock) == "16 min 40 s in 2 sessions"
    assert words.throughput(clock) == "0.1 rows/s in the 1 min 40 s that asked the model"


def test_where_all_time_went_into_asking_the_rate_stands_alone(make_run: MakeRun) -> None:
    clock = of([RIGHT] * 10, make_run).clock
    assert clock.asking_s == clock.wall_s
    assert words.throughput(clock) == "0.1 rows/s"


def test_a_run_at_work_is_called_so_by_report_and_status(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT])
    owner = LeaseOwner.current()
    _begin(store, run, "resume", 5000.0)
    store.acquire_lease(run.id, owner, 86_400.0)
    begun = _begin(store, run, "resume", 86_400.0)
    working = f"at work (process {owner.pid} on {owner.host}, since 1970-01-02 00:00 UTC)"
    assert build_report(store, run).notes[0] == f"run test-run is {working}: its figures may change."
    process = process_of(store, run)
    assert process is not None and said(process) == working
    store.end_session(begun, "done", now=86_401.0)
    store.release_lease(run.id, owner)
    assert not any("at work" in note for note in build_report(store, run).notes)
    assert process_of(store, run) is None


def test_a_session_that_has_not_ended_is_said(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT])
    _begin(store, run, "resume", 5000.0)
    report = build_report(store, run)
    assert any("ended without a word" in note for note in report.notes)
    assert report.clock.wall_s == 100.0


def test_official_settings_are_recognised(make_run: MakeRun) -> None:
    ran = of([RIGHT], make_run).ran
    assert ran.official
    assert ran.unofficial == ()
    assert ran.judge is not None
    assert (ran.judge.model, ran.judge.host) == ("claude-sonnet-5", "api.anthropic.com")
    assert ran.model.settings == {"max_tokens": 2048, "temperature": 0.0}
    assert ran.model.reported_models == {"test-vlm-1-2026-11": 1}
    assert list(ran.model.prompts) == ["suffix_single_answer", "system"]
    assert ran.packages == ("0.1.0",)


JUDGED: Row = {"model": "claude-sonnet-5", "endpoint": "anthropic", "base_url": None}
CONFIG: Row = {"data": None, "judge": JUDGED}
JUDGE = {
    "model": "claude-sonnet-5",
    "endpoint": "anthropic",
    "prompt": "c24a05faadcb87e6d5ad4eecf6e5697f6ba50a7d8dc7614fc510e6a491f8cd7b",
}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"benchmark": "other"}, "known for mmbu-public only"),
        ({"judge": None}, "there is no judge"),
        ({"judge": {**JUDGE, "model": "gpt-9"}}, "the judge is gpt-9, not claude-sonnet-5"),
        ({"judge": {**JUDGE, "prompt": "0" * 64}}, "prompt is not open_per_dataset_v3"),
        (
            {"config": {**CONFIG, "judge": {**JUDGED, "base_url": "http://localhost:99/v1"}}},
            "reached at localhost, not at api.anthropic.com",
        ),
        ({"config": {}}, "reached at an unknown host"),
        ({"config": {**CONFIG, "data": "/data/mine"}}, "not read from the hub"),
        ({"limit": 1}, "only 1 of 2 rows were selected"),
    ],
)
def test_unofficial_settings_are_named(make_run: MakeRun, settings: dict[str, Any], reason: str) -> None:
    ran = of([RIGHT, RIGHT], make_run, **settings).ran
    assert not ran.official
    assert any(reason in found for found in ran.unofficial)


def test_a_smaller_selection_is_said(make_run: MakeRun) -> None:
    config = {**CONFIG, "limit": 2, "task": ["counting"], "where": {"metadata_stain": "H&E"}}
    report = of([RIGHT, RIGHT, RIGHT], make_run, limit=2, config=config)
    assert report.notes[0] == (
        "2 of the dataset's 3 rows were selected "
        '(limit 2, task ["counting"], where {"metadata_stain": "H&E"}).'
    )
    assert report.rows.selected == report.overall.n == 2
    assert report.ran.selection == {"limit": 2, "task": ["counting"], "where": {"metadata_stain": "H&E"}}


def test_the_same_store_and_seed_give_the_same_report(make_run: MakeRun) -> None:
    store, run = make_run([RIGHT] * 40 + [WRONG] * 25 + [EMPTY] * 5)
    assert build_report(store, run) == build_report(store, run)
    assert build_report(store, run) != build_report(store, run, seed=1)


def test_counts_agree_with_the_rows_that_an_export_gives(make_run: MakeRun) -> None:
    rows = [RIGHT, WRONG, EMPTY, FAILED, UNJUDGED, PENDING, {**WRONG, "how": "untagged"}] * 3
    store, run = make_run(rows)
    report = build_report(store, run)
    exported = list(store.rows(run.id))
    for status in ("scored", "failed", "unjudged", "pending"):
        assert getattr(report.rows, status) == sum(row.status.value == status for row in exported)
    assert report.rows.untagged == sum(row.answer is not None and row.answer.untagged for row in exported)


def test_a_run_without_rows(make_run: MakeRun) -> None:
    report = of([RIGHT], make_run, limit=0)
    assert not report.complete
    assert report.first_line == "EMPTY: this run has no rows."
    assert report.overall.n == 0
    assert report.families == ()
    assert report.attributes == ()


def _begin(store: Store, run: RunRecord, kind: str, now: float) -> int:
    owner = LeaseOwner(host="workstation", boot="b", pid=1, process="1")
    return store.begin_session(run.id, kind=kind, owner=owner, package_version="0.1.1", config={}, now=now)
