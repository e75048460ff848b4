"""What a stage leaves behind lies in the store and comes back as it was."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from random import Random
from typing import Any

import pytest

from mmbu_async.bench.arrivals import Arrivals
from mmbu_async.bench.figures import figures
from mmbu_async.bench.gaps import Gaps
from mmbu_async.bench.histogram import Histogram
from mmbu_async.bench.measured import End, Measured
from mmbu_async.bench.plan import Closed, Ends, Load, Open, StagePlan, Warmup
from mmbu_async.bench.record import Phase, Record
from mmbu_async.bench.storing import STAGE, Kept, keep, stored
from mmbu_async.bench.verdict import judge
from mmbu_async.bench.watching import Tick
from mmbu_async.errors import BenchNotFoundError
from mmbu_async.store import Store
from mmbu_async.store.benches import REQUEST_COLUMNS, Benches


def a_stage(load: Load, count: int = 200, seed: int = 1) -> Measured:
    random = Random(seed)
    gaps = Gaps()
    records = []
    for number in range(count):
        phase = random.choice([Phase.OK] * 9 + [Phase.RATE_LIMIT, Phase.CUT])
        whole: dict[str, Any] = {"first_output_s": random.random(), "last_token_s": 1.0 + random.random()}
        records.append(
            Record(
                number=number,
                intended_s=number / 10,
                delay_s=random.random() / 100,
                total_s=random.uniform(2, 3),
                phase=phase,
                message="" if phase is Phase.OK else "a\ud800b",
                output_tokens=random.randrange(100),
                cost_usd=random.choice([None, 0.25]),
                correct=random.choice([None, True, False]),
                in_one_piece=random.random() < 0.1,
                estimated=random.random() < 0.1,
                text=random.choice([None, "<answer>4</answer>"]),
                **(whole if phase is Phase.OK else {}),
            )
        )
        gaps.add(number / 10, [random.random() for _ in range(5)])
    return Measured(
        plan=StagePlan(load=load, ends=Ends(requests=count), warmup=Warmup(requests=5), ramp_s=1.5),
        target="test-vlm",
        began_at=1790000000.25,
        begin_s=1.5,
        end_s=count / 10,
        ended=End.COUNT,
        records=tuple(records),
        gaps=gaps,
        ticks=(Tick(at_s=0.25, outstanding=3, in_flight=2, lag_s=0.001, cpu=0.5),),
        lags=Histogram.of([0.001, 0.002]),
        drained_s=2.5,
    )


LOADS = [
    Closed(concurrency=4),
    Open(rate=2.5),
    Open(rate=2.5, arrivals=Arrivals(kind="gamma", shape=0.5), most_in_flight=9),
]


@pytest.mark.parametrize("load", LOADS)
def test_a_stage_comes_back_as_it_was(tmp_path: Path, load: Load) -> None:
    measured = a_stage(load)
    with Benches.open(tmp_path / "store.sqlite") as benches:
        bench = benches.create("b", config={"seed": 1}, host="h", package_version="0", now=1.0)
        keep(benches, bench.id, Kept(number=0, part=0, role=STAGE, measured=measured))
        (found,) = stored(benches, bench.id)
        again = benches.get("b")
    assert (found.number, found.part, found.role) == (0, 0, STAGE)
    assert found.measured.plan == measured.plan
    assert found.measured.ticks == measured.ticks
    assert found.measured.gaps.dump() == measured.gaps.dump()
    assert len(found.measured.records) == 200
    for mine, theirs in zip(measured.records, found.measured.records, strict=True):
        assert theirs.message.replace("\ufffd", "\ud800") == mine.message
        for field in fields(Record):
            if field.name != "message":
                assert getattr(theirs, field.name) == getattr(mine, field.name)
    # Same records, same figures, intervals included.
    assert figures([found.measured]) == figures([measured])
    assert judge([found.measured], figures([found.measured])) == judge([measured], figures([measured]))
    assert again.requests == 200
    assert again.cost_usd == pytest.approx(sum(record.cost_usd or 0 for record in measured.records))


def test_every_field_of_a_record_has_its_column() -> None:
    assert {field.name for field in fields(Record)} == set(REQUEST_COLUMNS)


def test_names_are_made_unique_and_near_ones_are_named(tmp_path: Path) -> None:
    with Benches.open(tmp_path / "store.sqlite") as benches:
        made = [
            benches.create("gpt", config={}, host="h", package_version="0", now=1.0).name for _ in range(3)
        ]
        assert made == ["gpt", "gpt-2", "gpt-3"]
        assert [bench.name for bench in benches.all()] == made
        with pytest.raises(BenchNotFoundError, match="did you mean"):
            benches.get("gpt-4")


def test_how_it_ended_and_what_it_found(tmp_path: Path) -> None:
    with Benches.open(tmp_path / "store.sqlite") as benches:
        bench = benches.create("b", config={}, host="h", package_version="0", now=1.0)
        assert (bench.ended, bench.result) == (None, None)
        benches.end(bench.id, "done", now=5.0, result={"rate": 2.5})
        bench = benches.get("b")
    assert (bench.ended, bench.ended_at, bench.result) == ("done", 5.0, {"rate": 2.5})


def test_runs_and_benches_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with Store.open(path) as store:
        assert store.runs() == []
    with Benches.open(path) as benches:
        benches.create("b", config={}, host="h", package_version="0", now=1.0)
    with Store.open(path) as store:
        assert store.runs() == []
