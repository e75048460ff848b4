"""Known wounds: connections that hang or drip, and what is kept when something breaks late."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import EndpointDownError, EndpointError
from mmbu_async.images import ImageLimits, prepare
from mmbu_async.model import FailureKind, PreparedImage, Status
from mmbu_async.pipeline.progress import lines
from mmbu_async.simulator import Latency
from mmbu_async.tasks.mmbu_public import MmbuPublic
from tests.whole_run import (
    ENDPOINTS,
    MINI,
    ROWS,
    addresses,
    calls,
    complete,
    config,
    replies,
    simulated,
    statuses,
    stored,
)

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

STREAMED = pytest.mark.parametrize("stream", [False, True])


@ENDPOINTS
@STREAMED
async def test_a_reply_that_drips_is_given_up_after_its_time(
    data: Path, store: Path, endpoint: str, stream: bool
) -> None:
    """Each byte comes long before the idle limit; only the limit of the whole attempt ends it."""
    began = time.monotonic()
    async with simulated("drip@model=text:number 7?", drip_interval_s=0.2) as simulator:
        settings = config(
            simulator, store, data, endpoint, stream=stream, timeout=1.0, idle_timeout=0.6, max_attempts=2
        )
        result = await api.evaluate(settings)
        assert result.exit_code == 3
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.FAILED: 1}
        dripped = [record for record in await calls(simulator) if record.fault]
        assert [record.aborted for record in dripped] == [True, True]
    (row,) = [row for row in result if row.status is Status.FAILED]
    assert row.failure is not None
    assert row.failure.kind is FailureKind.TIMEOUT
    assert "within 1 s" in row.failure.message
    # The endpoint made a reply and may bill it: of unknown cost, not free.
    assert stored(store, "SELECT count(*) FROM call WHERE NOT ok AND cost_usd IS NULL") == [(2,)]
    assert time.monotonic() - began < 30


@ENDPOINTS
@pytest.mark.parametrize("fault", ["timeout", "drip"])
async def test_a_judge_that_hangs_on_one_row_holds_up_no_other(
    data: Path, store: Path, endpoint: str, fault: str
) -> None:
    began = time.monotonic()
    async with simulated(f"{fault}@judge=text:number 7?", drip_interval_s=0.2) as simulator:
        judge = {"timeout": 1.0, "idle_timeout": 0.6, "max_attempts": 2}
        result = await api.evaluate(config(simulator, store, data, endpoint, judge=judge))
        assert result.exit_code == 3
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.UNJUDGED: 1}
        asked = await calls(simulator, "judge")
        others = [record.ended_at for record in asked if not record.fault]
        assert max(others) < min(record.ended_at for record in asked if record.fault)
    assert time.monotonic() - began < 30


async def test_a_scorer_that_crashes_loses_no_reply(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated() as simulator:
        with monkeypatch.context() as broken:
            broken.setattr(MmbuPublic, "score", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                await api.evaluate(config(simulator, store, data))
        assert replies(store).total() == ROWS
        bought = len(simulator.log)
        await complete(await api.resume("r", store=store), store)
        assert len(simulator.log) == bought, "scores cost nothing"


async def test_a_start_that_fails_early_takes_nothing_from_what_earlier_ones_bought(
    data: Path, store: Path
) -> None:
    """Three sessions that buy a part, fail at once, and buy the rest: a run is the union of all."""
    async with simulated() as simulator:
        first = await api.evaluate(config(simulator, store, data, limit=25))
        await complete(first, store, 25)
        before = stored(store, "SELECT * FROM call ORDER BY id")
    for fault in ("unauthorized=1.0", "server_error=1.0"):
        async with simulated(fault) as simulator:
            changes = addresses(simulator, limit=ROWS, max_attempts=1, preflight=True)
            failed = await api.resume("r", store=store, changes=changes, check=False)
            assert failed.stopped is not None
            assert failed.counts.completed == 25
            assert stored(store, "SELECT * FROM call ORDER BY id")[: len(before)] == before
    async with simulated() as simulator:
        await complete(await api.resume("r", store=store, changes=addresses(simulator)), store)
        assert len(await calls(simulator)) == ROWS - 25, "and nothing is bought twice"
        assert Counter(record.occurrence for record in simulator.log) == {1: len(simulator.log)}


async def test_images_are_read_as_they_are_needed(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is held is bounded by the queues and the calls under way, not by the dataset."""
    rows = 400
    table = (data / "metadata.jsonl").read_text().splitlines()
    many = [
        table[0].replace('"row-0"', f'"row-{n}"').replace("number 0?", f"number {n}?") for n in range(rows)
    ]
    (data / "metadata.jsonl").write_text("\n".join(many))
    prepared: list[int] = []

    def counting(image: bytes, limits: ImageLimits) -> PreparedImage:
        prepared.append(len(image))
        return prepare(image, limits)

    monkeypatch.setattr("mmbu_async.pipeline.placement.prepare", counting)
    async with simulated("unauthorized@model=requests:3-1000", latency=Latency("fixed", 1.0)) as simulator:
        with pytest.raises(EndpointError):
            await api.evaluate(config(simulator, store, data, concurrency=2))
    assert 2 <= len(prepared) <= 100


async def test_boxes_are_compared_in_the_coordinates_of_the_original(tmp_path: Path, store: Path) -> None:
    """The endpoint sees images at half their size and answers in what it sees."""
    found = {}
    for edge in (10_000, 80):
        limits = tmp_path / "limits.toml"
        limits.write_text(
            f'[openai]\nendpoint = "openai"\nmax_edge = {edge}\n'
            'accepted = ["image/png", "image/jpeg"]\nsource = "a test"\n'
        )
        async with simulated() as simulator:
            settings = config(
                simulator,
                store.with_name(f"{edge}.sqlite"),
                MINI,
                image_limits=limits,
                task=["object detection"],
            )
            result = await api.evaluate(settings)
            sent = {max(p.width, p.height) for record in await calls(simulator) for p in record.pictures}
            assert max(sent) <= edge
        found[edge] = list(result)
    whole, scaled = found[10_000], found[80]
    assert len(whole) == len(scaled) >= 5
    right = [row for row in whole if row.score is not None and row.score.correct]
    assert len(right) >= 4
    kept = 0
    for before, after in zip(whole, scaled, strict=True):
        assert after.image_scale is not None and after.image_scale < 0.8
        assert before.score is not None and after.score is not None
        kept += bool(before.score.correct and after.score.correct)
    # Smaller pictures are harder to see; boxes in the wrong coordinates would never fit.
    assert kept >= len(right) / 2


@pytest.mark.parametrize("role", ["model", "judge"])
async def test_the_log_says_what_the_tail_waits_for(
    data: Path, store: Path, role: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a terminal too: a night's progress is read in its log."""
    monkeypatch.setattr("mmbu_async.pipeline.progress.TAIL_HINT_S", 0.5)
    caplog.set_level(logging.INFO, logger="mmbu_async.progress")
    async with simulated(f"timeout@{role}=text:number 7?") as simulator:
        patience = {"idle_timeout": 1.5, "max_attempts": 1}
        changes = {"judge": patience} if role == "judge" else patience
        await api.evaluate(config(simulator, store, data, limit=10, **changes), watch=lines(0.2))
    waits_for = "row-7" if role == "model" else "row-7 at judge claude-sonnet-5"
    assert "9/10 rows | " in caplog.text
    assert f"longest under way: row {waits_for}, 1 s" in caplog.text


@ENDPOINTS
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            "thinking_spent",
            "token limit ended the judge's reply before its verdict; raise --judge-max-tokens",
        ),
        ("refusal", "the judge refused to answer"),
        ("no_verdict", "no verdict in the judge's reply"),
    ],
)
async def test_a_judge_that_thinks_for_too_long_is_told_from_one_that_refuses(
    data: Path, store: Path, endpoint: str, fault: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with simulated(f"{fault}@judge=1.0") as simulator:
        with pytest.raises(EndpointDownError, match=re.escape(words)):
            await api.evaluate(config(simulator, store, data, endpoint))
    assert f"unjudged: {words}" in caplog.text.replace("unjudged: the token", "unjudged: token")
    assert not stored(store, "SELECT 1 FROM score WHERE correct = 0"), "unjudged is not wrong"
