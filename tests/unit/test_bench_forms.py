"""What is shown of a bench: text, page, JSON, CSV, advice, comparisons; whatever names and messages hold."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from rich.console import Console

from mmbu_async.bench.advice import advise
from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.compare import compare, difference, ratio
from mmbu_async.bench.compare_text import print_comparison
from mmbu_async.bench.compare_text import to_json as comparison_to_json
from mmbu_async.bench.forms import to_csv, to_json
from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.histogram import Histogram
from mmbu_async.bench.html import to_html
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan, Warmup
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.report import BenchReport, build_report
from mmbu_async.bench.spec import Spec
from mmbu_async.bench.storing import PROBE, STAGE, Kept
from mmbu_async.bench.text import print_benches, print_report, remarks
from mmbu_async.bench.watching import Tick
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError
from mmbu_async.stats import Estimate
from mmbu_async.store.benches import BenchRecord
from tests.hostile import EVERYTHING, MARK, SURROGATE, steering
from tests.pages import read_page

SAFE = EVERYTHING.replace(SURROGATE, "")


def measured(load: Load, seconds: float, target: str = "vlm", count: int = 120, **changes: Any) -> Measured:
    """A stage with replies of about so many seconds, a few of them bad."""
    random = Random(f"{load.name} {target}")
    records = []
    gaps = Gaps()
    rate = changes.pop("rate", None) or (load.rate if isinstance(load, Open) else load.concurrency / seconds)
    message = changes.pop("message", "slow down")
    bad = changes.pop("bad", 0)
    for number in range(count):
        total = seconds * random.uniform(0.8, 1.25)
        good = number >= bad + 12 or number < 12
        records.append(
            Record(
                number=number,
                intended_s=number / rate,
                delay_s=0.0001,
                sent_s=0.02,
                upload_s=0.01,
                first_byte_s=total / 4,
                first_output_s=total / 3 if good else None,
                last_token_s=total if good else None,
                total_s=total,
                phase=Phase.OK if good else Phase.RATE_LIMIT,
                message="" if good else message,
                request_id=message,
                row=message,
                input_tokens=1000,
                output_tokens=50,
                images=1,
                pixels=10**6,
                cost_usd=0.002,
                bytes_up=100_000,
                in_flight=2,
                correct=number % 3 > 0,
                text=message,
            )
        )
        gaps.add(number / rate, [total / 80] * 20)
    values: dict[str, Any] = {
        "plan": StagePlan(load=load, ends=Ends(requests=count), warmup=Warmup(requests=12)),
        "target": target,
        "began_at": 1790000000.0,
        "begin_s": 0.0,
        "end_s": count / rate,
        "ended": End.COUNT,
        "records": tuple(records),
        "gaps": gaps,
        "ticks": tuple(
            Tick(at_s=at / 4, outstanding=3, in_flight=3, lag_s=0.001, cpu=0.2)
            for at in range(1, int(count / rate * 4))
        ),
        "lags": Histogram.of([0.0005] * 50),
        "drained_s": seconds,
    }
    return Measured(**(values | changes))


def report(
    *stages: Measured,
    name: str = "b",
    role: str = STAGE,
    planned: bool = True,
    result: Any = None,
    **changes: Any,
) -> BenchReport:
    config = RunConfig.model_validate(
        {"model": "vlm", "base_url": "https://api.example.org/v1", "stream": True} | changes
    )
    stored = Spec(config=config).stored()
    if len({stage.target for stage in stages}) > 1:
        stored["beside"] = {**stored["config"], "model": "other"}
    stored["planned"] = {"benchmark": "mmbu-public", "rows": 7200} if planned else None
    bench = BenchRecord(
        id=1,
        name=name,
        config=json.loads(json.dumps(stored)),
        host="workstation",
        package_version="0.1.0",
        created_at=1790000000.0,
        ended_at=1790000100.0,
        ended="done",
        result=result,
        requests=sum(len(stage.records) for stage in stages),
        cost_usd=1.25,
    )
    kept = [Kept(number=n, part=n, role=role, measured=stage) for n, stage in enumerate(stages)]
    return build_report(bench, kept)


SWEEP = [
    measured(Closed(concurrency=2), 0.5),
    measured(Closed(concurrency=8), 0.5),
    measured(Closed(concurrency=16), 1.0),
    measured(Closed(concurrency=32), 2.0),
]


def text_of(found: BenchReport, **options: Any) -> str:
    out = io.StringIO()
    print_report(found, Console(file=out, width=100), **options)
    return out.getvalue()


# ---------------------------------------------------------------- text


def test_a_line_for_each_load_and_no_line_is_wider_than_the_screen() -> None:
    shown = text_of(report(*SWEEP))
    for load in ("2 at once", "8 at once", "16 at once", "32 at once"):
        assert shown.count(f"\n{load}") == 5
    tables = [line for line in shown.splitlines() if " at once" in line]
    assert max(map(len, tables)) <= 100
    assert "CLIENT-LIMITED" not in shown
    assert "TTFT p50" in shown
    assert "between tokens" not in shown
    full = text_of(report(*SWEEP), full=True)
    assert full.count("between tokens") == 4
    assert full.count("output tokens a second") == 4


def test_a_client_at_its_limit_is_said_loudly() -> None:
    busy = replace(SWEEP[0], ticks=tuple(replace(tick, cpu=0.99) for tick in SWEEP[0].ticks))
    shown = text_of(report(busy))
    assert "CLIENT-LIMITED" in shown
    assert "took 99 % of a core" in shown


def test_what_failed_is_shown_by_phase() -> None:
    shown = text_of(report(measured(Open(rate=4), 0.5, bad=5)))
    assert "(429 5)" in shown


def test_an_empty_bench_is_shown_too() -> None:
    empty = report()
    assert "nothing measured" in text_of(empty)
    read_page(to_html(empty))
    assert json.loads(to_json(empty))["parts"] == []


# ---------------------------------------------------------------- page, JSON, CSV


@pytest.mark.parametrize(
    "found",
    [
        report(*SWEEP),
        report(measured(Open(rate=4), 0.5, bad=9), measured(Open(rate=4), 0.7, "other")),
        report(measured(Open(rate=4, arrivals=Arrivals(kind="poisson")), 0.5, ended=End.SATURATED)),
    ],
    ids=["sweep", "two endpoints", "saturated"],
)
def test_the_page_is_complete_in_itself(found: BenchReport) -> None:
    page = read_page(to_html(found))
    for part in found.parts:
        assert part.load.name in page.text
    data = page.csv("requests-0")
    assert len(data) == 1 + len(found.parts[0].blocks[0].records)
    assert "mmbu run mmbu-public" in page.text or "saturated" in page.text


def test_json_has_every_request_and_every_figure() -> None:
    found = json.loads(to_json(report(*SWEEP)))
    assert [part["load"]["name"] for part in found["parts"]] == [stage.plan.load.name for stage in SWEEP]
    for part, stage in zip(found["parts"], SWEEP, strict=True):
        assert len(part["requests"]) == len(stage.records)
        assert part["requests"][5]["total_s"] == stage.records[5].total_s
        assert sum(request["counts"] for request in part["requests"]) == part["figures"]["counted"]
        p95 = part["figures"]["times"]["latency"]["percentiles"]["p95"]
        assert p95["low"] <= p95["value"] <= p95["high"]
        assert part["verdict"]["client_limited"] == []
        assert part["blocks"][0]["timeline"]
    assert found["advice"][0]["concurrency"] == 8


def test_csv_has_a_line_a_request() -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(report(*SWEEP)))))
    assert len(rows) == sum(len(stage.records) for stage in SWEEP)
    assert float(rows[7]["total_s"]) == SWEEP[0].records[7].total_s
    assert {row["phase"] for row in rows} == {"ok"}


def test_hostile_texts_are_text_in_every_form() -> None:
    stages = [
        measured(Open(rate=4), 0.5, target=SAFE, bad=5, message=SAFE),
        measured(Open(rate=4), 0.5, target=f"other {SAFE}", message=SAFE),
    ]
    found = report(*stages, name=SAFE, model=SAFE, params={SAFE: [SAFE]}, data=SAFE)
    shown = text_of(found, full=True)
    page = read_page(to_html(found))
    as_json = to_json(found)
    as_csv = to_csv(found)
    out = io.StringIO()
    print_comparison(compare(found, None), Console(file=out, width=200))
    print_benches([found.bench], Console(file=out, width=200))
    for said in (shown, page.text, as_json, as_csv, out.getvalue()):
        assert MARK in said
    for said in (shown, as_json, out.getvalue()):
        assert steering(said) == []
    for row in csv.reader(io.StringIO(as_csv)):
        assert not any(cell.startswith(("=", "+", "@")) for cell in row)
    assert json.loads(comparison_to_json(compare(found, None)))["pairs"]


# ---------------------------------------------------------------- advice


def test_the_least_load_that_brings_about_the_most_is_recommended() -> None:
    (advice,) = advise(report(*SWEEP))
    assert (advice.concurrency, advice.rpm) == (8, None)
    assert advice.replies_a_second == pytest.approx(16, rel=0.1)
    assert advice.hours == pytest.approx(7200 / advice.replies_a_second / 3600)
    assert advice.usd == pytest.approx(7200 * 0.002)
    assert advice.command == (
        "mmbu run mmbu-public --model vlm --base-url https://api.example.org/v1 --stream --concurrency 8"
    )


def test_a_limit_that_was_met_becomes_a_limit_of_the_run() -> None:
    limited = measured(Closed(concurrency=32), 0.5, bad=60)
    (advice,) = advise(report(*SWEEP[:2], limited))
    assert advice.concurrency == 8
    assert advice.rpm == int(advice.replies_a_second * 60)


def test_loads_that_ended_early_or_failed_are_not_recommended() -> None:
    piled = measured(Open(rate=20), 0.5, ended=End.SATURATED)
    failed = measured(Open(rate=10), 0.5, bad=30)
    calm = measured(Open(rate=4), 0.5)
    (advice,) = advise(report(piled, failed, calm))
    assert advice.at == "4/s"
    assert advice.rpm == 240
    assert advice.concurrency == 4
    assert advise(report(piled)) == ()


def test_a_search_is_recommended_at_what_held() -> None:
    result = {"held": 4.0, "failed": 4.2}
    (advice,) = advise(
        report(measured(Open(rate=2), 0.5), measured(Open(rate=4), 0.5), role=PROBE, result=result)
    )
    assert advice.at == "4/s"
    assert advise(report(measured(Open(rate=2), 0.5), role=PROBE, result={"held": None, "failed": 2.0})) != ()


def test_without_a_benchmark_hours_and_money_are_not_told() -> None:
    (advice,) = advise(report(*SWEEP, planned=False))
    assert (advice.hours, advice.usd, advice.rows) == (None, None, 0)
    assert advice.command.startswith("mmbu run --model vlm")


# ---------------------------------------------------------------- comparisons


def test_twice_as_slow_is_found_to_be() -> None:
    fast = report(measured(Open(rate=4), 0.5), name="fast")
    slow = report(measured(Open(rate=4), 1.0), name="slow")
    found = compare(fast, slow)
    (pair,) = found.pairs
    lines = {line.what: line for line in pair.lines}
    assert lines["latency p50"].change.value == pytest.approx(2.0, rel=0.05)
    assert lines["latency p50"].differs
    assert lines["ttft p50"].differs
    assert not lines["replies"].differs
    assert not lines["errors"].differs
    out = io.StringIO()
    print_comparison(found, Console(file=out, width=100))
    assert "x 2.0" in out.getvalue() or "x 1.9" in out.getvalue()


def test_what_is_the_same_is_not_found_to_differ() -> None:
    one = report(measured(Open(rate=4), 0.5), name="one")
    other = report(measured(Open(rate=4), 0.5, target="v"), name="other")
    (pair,) = compare(one, other).pairs
    assert [line.what for line in pair.lines if line.differs] == []


def test_what_else_is_not_the_same_is_said() -> None:
    one = report(SWEEP[0], name="one")
    other = report(SWEEP[0], SWEEP[1], name="other", max_tokens=5)
    found = compare(one, other)
    assert found.differences == ("max_tokens: 2048 -> 5",)
    assert found.only_second == ("8 at once",)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (report(SWEEP[0]), None, "measured one endpoint"),
        (report(SWEEP[0]), report(SWEEP[1]), "no load in common"),
        (report(SWEEP[0], measured(Open(rate=1), 1, "other")), report(SWEEP[1]), "measured two endpoints"),
        (report(), report(SWEEP[1]), "no load in common"),
    ],
)
def test_what_cannot_be_compared(first: BenchReport, second: BenchReport | None, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        compare(first, second)


def test_intervals_of_ratios_and_differences() -> None:
    one = Estimate(value=1.0, low=0.8, high=1.25)
    same = ratio(one, one)
    assert same.value == 1.0
    assert same.low is not None
    assert same.high is not None
    assert same.low == pytest.approx(1 / same.high)
    assert same.high == pytest.approx(1.25**1.4142, rel=0.01)
    assert ratio(one, Estimate(value=2.0)) == Estimate(value=2.0)
    assert ratio(Estimate(), one) == Estimate()
    change = difference(Estimate(value=0.5, low=0.4, high=0.6), Estimate(value=0.6, low=0.5, high=0.7))
    assert change.low == pytest.approx(0.1 - 0.1414, abs=1e-4)
    assert change.high == pytest.approx(0.1 + 0.1414, abs=1e-4)


def test_what_is_not_the_same_is_said_in_words() -> None:
    one = report(SWEEP[0], name="one", stream=False, data="rows")
    other = report(SWEEP[0], name="other", stream=True)
    one.bench.config["bench"]["limits"] = {"latency_s": None, "first_token_s": None}
    other.bench.config["bench"]["limits"] = {"latency_s": 1.0, "first_token_s": None}
    assert compare(one, other).differences == (
        "limits: \u2013 -> latency s 1",
        "stream: no -> yes",
        "data: rows -> \u2013",
    )


def test_requests_that_only_look_are_told_apart() -> None:
    found = report(*SWEEP)
    assert "before them" not in text_of(found)
    found = replace(found, bench=replace(found.bench, requests=found.bench.requests + 2))
    assert "2 requests before them, to see that it answers" in text_of(found)
    assert "2 requests before them" in to_html(found)


def test_a_table_without_a_column_is_left_out() -> None:
    stage = measured(Closed(concurrency=1), 0.5)
    plain = tuple(replace(one, first_output_s=None, last_token_s=None) for one in stage.records)
    unstreamed = report(replace(stage, records=plain, gaps=Gaps()), stream=False)
    out = io.StringIO()
    print_report(unstreamed, Console(file=out, width=120))
    assert "Latency" in out.getvalue()
    assert "Tokens" not in out.getvalue()
    assert ">Tokens<" not in to_html(unstreamed)
    assert ">Tokens<" in to_html(report(stage))


def test_a_remark_that_is_true_of_many_loads_is_one_line() -> None:
    stages = [measured(Open(rate=rate), 0.5) for rate in (1, 2, 3, 4, 5)]
    pieces = [
        replace(stage, records=tuple(replace(one, in_one_piece=one.ok) for one in stage.records))
        for stage in stages
    ]
    (told,) = remarks(report(*pieces).parts)
    assert told.startswith("vlm, 1/s")
    assert told.endswith("The like of 4 other loads.")
    assert len(list(remarks(report(*pieces[:3]).parts))) == 3


def test_the_page_tells_no_setting_that_a_bench_does_not_heed() -> None:
    page = to_html(report(*SWEEP, concurrency=48, max_attempts=6))
    settings = page[page.index('id="set-up"') :]
    for name in ("max attempts", "judge coverage", "batch poll", ">concurrency<", "preflight"):
        assert name not in settings, name
    assert "max tokens" in settings


def test_forms_do_not_depend_on_where_they_are_made() -> None:
    assert to_html(report(*SWEEP)) == to_html(report(*SWEEP))
    assert to_json(report(*SWEEP)) == to_json(report(*SWEEP))


def test_settings_on_the_page_are_words_and_no_pythons() -> None:
    page = to_html(report(*SWEEP))
    read = read_page(page)
    settings = page[page.index('id="set-up"') :]
    assert read
    for python in ("True", "False", "None", "{&#39;", "{&#x27;", "{'", "['"):
        assert python not in settings, python
