"""Verdicts bought again: of which rows, of which judge, and when they become the run's."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import ConfigError, EndpointDownError, MissingKeyError
from mmbu_async.model import Answer, Completion, Status
from mmbu_async.pipeline import preflight
from mmbu_async.simulator import Simulator
from mmbu_async.tasks.mmbu_public import MmbuPublic
from tests.whole_run import ROWS, addresses, calls, complete, config, simulated, statuses

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

BARREN = "no_verdict@judge=text:picture number 7?"


async def test_failed_alone_asks_about_rows_without_a_verdict_only(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with simulated(BARREN) as simulator:
        result = await api.evaluate(config(simulator, store, data))
        assert statuses(result) == {Status.SCORED: ROWS - 1, Status.UNJUDGED: 1}
        assert result.exit_code == 3

    plain = MmbuPublic.read

    def reading(self: MmbuPublic, sample: Any, completion: Completion) -> Answer:
        answer = plain(self, sample, completion)
        return replace(answer, text=f"{answer.text} indeed") if sample.id == "row-9" else answer

    monkeypatch.setattr(MmbuPublic, "read", reading)
    async with simulated() as simulator:
        changes = {"judge": addresses(simulator)["judge"]}
        result = await api.rejudge("r", store=store, changes=changes, failed=True)
        asked = await calls(simulator, "judge")
        assert len(asked) == 1
        by_row = {row.sample.id: row.status for row in api.rows("r", store=store)}
        assert by_row.pop("row-7") is Status.SCORED, "asked again"
        api.rescore("r", store=store)
        # Without the flag the row whose reply is read differently is asked about as well.
        assert not api.report("r", store=store).complete
        result = await api.rejudge("r", store=store, changes=changes)
        assert len(await calls(simulator, "judge")) == 2
        assert result.complete
        assert not await calls(simulator)


async def test_failed_asks_no_other_judge(data: Path, store: Path) -> None:
    async with simulated(BARREN) as simulator:
        await api.evaluate(config(simulator, store, data))
        before = len(await calls(simulator, "judge"))
        for other in ({"model": "other-judge"}, {"max_tokens": 4096}):
            with pytest.raises(ConfigError, match=r"--failed .* leave out --failed"):
                await api.rejudge("r", store=store, changes={"judge": other}, failed=True)
        assert len(await calls(simulator, "judge")) == before
        await api.rejudge("r", store=store, changes={"judge": {"rpm": 600.0}}, failed=True)
        assert len(await calls(simulator, "judge")) == before + 2, "twice about the one row"


async def test_another_judges_verdicts_are_published_at_once_and_whole(data: Path, store: Path) -> None:
    """Somebody looks at the run all the time while it is judged anew."""
    seen: set[tuple[Any, ...]] = set()
    over = threading.Event()

    def look() -> None:
        with closing(sqlite3.connect(store)) as connection:
            while not over.is_set():
                seen.update(
                    connection.execute(
                        "SELECT run.judge_id, json_extract(run.config, '$.judge.model'), score.judge_id, "
                        "status, count(*) FROM run JOIN score ON score.run_id = run.id GROUP BY 1, 2, 3, 4"
                    ).fetchall()
                )

    async with simulated("no_verdict@judge=text:picture number 3?") as simulator:
        await api.evaluate(config(simulator, store, data, judge={"model": "first"}))
        watching = threading.Thread(target=look)
        watching.start()
        try:
            changes = {"judge": {"model": "second"}}
            await api.rejudge("r", store=store, changes=changes)
        finally:
            over.set()
            watching.join()
    first = {(1, "first", 1, "scored", ROWS - 1), (1, "first", 1, "unjudged", 1)}
    second = {(2, "second", 2, "scored", ROWS - 1), (2, "second", 2, "unjudged", 1)}
    assert first <= seen <= first | second
    assert api.report("r", store=store).ran.judge is not None


@pytest.mark.parametrize(("wanted", "code"), [(1.0, 3), (0.98, 3), (0.975, 0), (0.0, 0)])
async def test_a_share_of_verdicts_can_be_enough(data: Path, store: Path, wanted: float, code: int) -> None:
    """One of 40 rows stays without a verdict: 0.975 of them have one."""
    async with simulated(BARREN) as simulator:
        result = await api.evaluate(config(simulator, store, data, judge_coverage=wanted))
        assert (result.exit_code, result.complete) == (code, False)
        report = result.report()
        assert report.first_line.startswith("INCOMPLETE")
        assert report.overall.accuracy.value is None, "bounds, whatever was asked for"
        # What was asked for stays with the run, and can be changed by whoever goes on.
        for again in (await api.resume("r", store=store), await api.rejudge("r", store=store)):
            assert again.exit_code == code
        lowered = await api.rejudge("r", store=store, changes={"judge_coverage": 0.9})
        assert lowered.exit_code == 0
        assert (await api.resume("r", store=store)).exit_code == 0


async def test_enough_verdicts_do_not_make_up_for_a_reply(data: Path, store: Path) -> None:
    async with simulated("content_policy@model=text:picture number 8?") as simulator:
        result = await api.evaluate(config(simulator, store, data, judge_coverage=0.5))
        assert (result.counts.coverage, result.exit_code) == (1.0, 3)


def panel_of(simulator: Simulator) -> list[dict[str, Any]]:
    url = simulator.url + "/v1"
    return [{"name": "b", "model": "judge-b", "endpoint": "openai", "base_url": url, "api_key_env": "B_KEY"}]


async def test_a_judge_whose_verdicts_are_all_there_needs_no_key(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("B_KEY", "one")
    async with simulated() as simulator:
        panel = panel_of(simulator)
        url = simulator.url + "/v1"
        judge = {"name": "a", "model": "judge-a", "endpoint": "openai", "base_url": url}
        settings = config(
            simulator, store, data, limit=4, panel=panel, judge=judge | {"api_key_env": "A_KEY"}
        )
        monkeypatch.setenv("A_KEY", "another")
        await complete(await api.evaluate(settings), store, 4)
        before = len(await calls(simulator, "judge"))
        # A third is added by somebody who has a key for that one alone.
        monkeypatch.delenv("A_KEY")
        monkeypatch.delenv("B_KEY")
        third = {"name": "c", "model": "judge-c", "endpoint": "openai", "base_url": url}
        changes = {"panel": [*panel, third], "verdict": "majority"}
        await complete(await api.rejudge("r", store=store, changes=changes), store, 4)
        assert len(await calls(simulator, "judge")) == before + 4
        fourth = third | {"name": "d", "model": "judge-d", "api_key_env": "D_KEY"}
        with pytest.raises(MissingKeyError, match="D_KEY"):
            await api.rejudge("r", store=store, changes={"panel": [*panel, third, fourth]})
        assert len(await calls(simulator, "judge")) == before + 4


async def test_a_judge_that_never_answers_ends_a_rejudge_with_its_first_row(
    data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preflight, "PATIENCE_S", 0.2)
    async with simulated() as simulator:
        await complete(await api.evaluate(config(simulator, store, data, preflight=True)), store)
    async with simulated("timeout@judge=1.0") as simulator:
        other = {"model": "another", "base_url": simulator.url + "/v1", "idle_timeout": 0.4}
        with pytest.raises(
            EndpointDownError, match="preflight: the judge another did not answer the first row"
        ):
            await api.rejudge("r", store=store, changes={"judge": other})
        assert len(await calls(simulator, "judge")) == 1
