"""Several judges: each asked once about a prompt, a row done when all have answered, a majority derived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.config import RunConfig
from mmbu_async.errors import ConfigError, EndpointDownError, EndpointError, RunChangedError
from mmbu_async.model import Status
from mmbu_async.pipeline.monitor import Monitor
from mmbu_async.simulator import Simulator
from tests.whole_run import ROWS, calls, complete, config, simulated, statuses, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")


def about(*numbers: int, fault: str = "other_verdict") -> list[str]:
    """Fault rules for these rows."""
    return [f"{fault}@judge=text:picture number {number}?" for number in numbers]


@dataclass
class House:
    """The model with the first judge, and the judges `b` and `c`, each at an address of its own."""

    a: Simulator
    b: Simulator
    c: Simulator

    def judge(self, name: str) -> dict[str, Any]:
        url = f"{getattr(self, name).url}/v1"
        return {"name": name, "model": f"judge-{name}", "endpoint": "openai", "base_url": url}

    @property
    def panel(self) -> list[dict[str, Any]]:
        return [self.judge("b"), self.judge("c")]

    def config(self, store: Path, data: Path, **changes: Any) -> RunConfig:
        plain = {"panel": self.panel, "verdict": "majority", "judge": {"model": "judge-a"}}
        return config(self.a, store, data, **plain | changes)

    async def asked(self) -> list[int]:
        """Requests that each judge has seen."""
        return [len(await calls(judge, "judge")) for judge in (self.a, self.b, self.c)]


@asynccontextmanager
async def house(
    a: list[str] | None = None, b: list[str] | None = None, c: list[str] | None = None
) -> AsyncIterator[House]:
    async with AsyncExitStack() as stack:
        yield House(
            *[await stack.enter_async_context(simulated(*rules or [])) for rules in (a, b, c)],
        )


def verdicts(store: Path, judge: str, run: str = "r") -> dict[str, int | None]:
    return dict(
        stored(
            store,
            "SELECT row_id, correct FROM verdict JOIN judge ON judge.id = verdict.judge_id "  # noqa: S608
            "JOIN sample ON sample.id = sample_id JOIN run ON run.id = run_id "
            f"WHERE judge.name = '{judge}' AND run.name = '{run}'",
        )
    )


def right(result: api.RunResult) -> dict[str, bool | None]:
    return {row.sample.id: row.score.correct if row.score else None for row in result}


async def test_the_majority_makes_the_score(data: Path, store: Path) -> None:
    async with house(b=about(7, 8), c=[*about(8), *about(9, fault="no_verdict")]) as judges:
        result = await api.evaluate(judges.config(store, data))
        await complete(result, store)
        alone = verdicts(store, "judge-a")
        assert {len(verdicts(store, name)) for name in ("judge-a", "b", "c", "majority")} == {ROWS}
        assert verdicts(store, "b")["row-7"] == 1 - (alone["row-7"] or 0)
        assert verdicts(store, "c")["row-9"] is None
        majority = verdicts(store, "majority")
        assert {row for row in alone if alone[row] != majority[row]} == {"row-8"}, "both others outvote it"
        assert right(result) == {row: bool(correct) for row, correct in majority.items()}
        prompts = len({record.content for record in await calls(judges.a, "judge")})
        assert await judges.asked() == [prompts, prompts, prompts + 1]
        assert len(await calls(judges.a)) == ROWS
        again = await api.resume("r", store=store)
        # Only what has no verdict is asked again: row 9, of c, at most twice a session.
        assert await judges.asked() == [prompts, prompts, prompts + 3]
        assert right(again) == right(result)


async def test_a_tie_is_no_verdict(data: Path, store: Path) -> None:
    async with house(b=about(7)) as judges:
        two = judges.config(store, data, panel=[judges.judge("b")])
        result = await api.evaluate(two)
        assert (result.exit_code, statuses(result)) == (3, {Status.SCORED: ROWS - 1, Status.UNJUDGED: 1})
        assert verdicts(store, "majority")["row-7"] is None
        assert (result.tied, [status.tied for status in api.status("r", store=store)]) == (1, [1])
        assert "1 unjudged" in result.report().first_line
        asked = await judges.asked()
        allowed = await api.rejudge("r", store=store, changes={"judge_coverage": 0.97}, failed=True)
        assert allowed.exit_code == 0
        assert await judges.asked() == asked, "both judges have said what they think"


async def test_one_of_the_panel_may_decide(data: Path, store: Path) -> None:
    async with house(b=about(7)) as judges:
        result = await api.evaluate(judges.config(store, data, verdict="b"))
        await complete(result, store)
        assert right(result) == {row: bool(correct) for row, correct in verdicts(store, "b").items()}
        assert right(result)["row-7"] != bool(verdicts(store, "judge-a")["row-7"])
        # Another word is another judge's, and costs nothing where that one has been asked.
        asked = await judges.asked()
        with pytest.raises(RunChangedError, match=r"verdict: b -> judge.*mmbu rejudge r"):
            await api.resume("r", store=store, changes={"verdict": "judge"})
        other = await api.rejudge("r", store=store, changes={"verdict": "judge"})
        assert right(other)["row-7"] == bool(verdicts(store, "judge-a")["row-7"])
        assert await judges.asked() == asked
        await complete(await api.resume("r", store=store), store)


async def test_a_judge_that_is_down_stops_the_run_and_is_asked_later(data: Path, store: Path) -> None:
    async with house(c=["bad_gateway@judge=1.0"]) as judges:
        panel = [judges.judge("b"), judges.judge("c") | {"max_attempts": 2}]
        with pytest.raises(EndpointDownError, match=r"the judge c at 127\.0\.0\.1 gave no usable verdict"):
            await api.evaluate(judges.config(store, data, panel=panel, concurrency=4))
        kept = {name: verdicts(store, name) for name in ("judge-a", "b")}
        assert not api.report("r", store=store).complete
        async with simulated() as healed:
            panel[1] |= {"base_url": f"{healed.url}/v1"}
            result = await api.resume("r", store=store, changes={"panel": panel})
            await complete(result, store)
            later = [record.content for record in await calls(healed, "judge")]
            assert len(later) == len(set(later))
        assert len(await calls(judges.a)) == ROWS, "no reply is bought twice"
        for name, earlier in kept.items():
            assert {row: verdicts(store, name)[row] for row in earlier} == earlier
        prompts = {record.content for record in await calls(judges.a, "judge")}
        assert (await judges.asked())[:2] == [len(prompts)] * 2, "each prompt once over both sessions"


async def test_the_preflight_asks_each_judge(data: Path, store: Path) -> None:
    async with house(b=["no_verdict@judge=1.0"]) as judges:
        with pytest.raises(EndpointDownError, match="preflight: the judge b gave no verdict on the first 3"):
            await api.evaluate(judges.config(store, data, preflight=True))
        assert await judges.asked() == [3, 6, 3]
    async with house(c=["unauthorized@judge=1.0"]) as judges:
        with pytest.raises(EndpointError, match="refuses the key in OPENAI_API_KEY"):
            # In a store of its own: a judge whose verdict is known is not asked.
            await api.evaluate(judges.config(store.with_name("t.sqlite"), data, preflight=True))
        assert (await judges.asked())[2] == 1


async def test_another_panel_is_another_judge(data: Path, store: Path) -> None:
    async with house() as judges:
        await api.evaluate(judges.config(store, data, limit=5))
        asked = await judges.asked()
        changes: list[tuple[dict[str, Any], str]] = [
            ({"panel": [judges.judge("b")]}, r"panel\.c: judge-c -> none"),
            (
                {"panel": [judges.judge("b"), judges.judge("c") | {"temperature": 0.5}]},
                r"panel\.c\.temperature: none -> 0\.5",
            ),
            ({"panel": [], "verdict": "judge"}, "verdict: majority -> judge"),
            ({"judge": {"max_tokens": 99}}, "max_tokens: 512 -> 99"),
        ]
        for change, words in changes:
            with pytest.raises(RunChangedError, match=words) as caught:
                await api.resume("r", store=store, changes=change)
            assert "`mmbu rejudge r`" in str(caught.value)
        # Limits, addresses, and the order are no part of it.
        swapped = [judges.judge("c") | {"rpm": 600.0}, judges.judge("b") | {"name": "renamed"}]
        await complete(await api.resume("r", store=store, changes={"panel": swapped}), store, 5)
        assert await judges.asked() == asked
        with pytest.raises(ConfigError, match="--failed asks the judge of run 'r' again"):
            await api.rejudge("r", store=store, changes={"panel": [judges.judge("b")]}, failed=True)


async def test_a_rejudge_by_a_panel_buys_what_is_missing_and_publishes_it_whole(
    data: Path, store: Path
) -> None:
    async with house(b=about(7), c=about(7)) as judges:
        alone = judges.config(store, data, panel=[], verdict="judge")
        first = right(await api.evaluate(alone))
        (bought, *_) = await judges.asked()
        panel = {"panel": judges.panel, "verdict": "majority"}
        result = await api.rejudge("r", store=store, changes=panel)
        await complete(result, store)
        assert await judges.asked() == [bought, bought, bought], "the judge itself has given its verdicts"
        assert {row for row, was in first.items() if right(result)[row] != was} == {"row-7"}
        back = await api.rejudge("r", store=store, changes={"panel": [], "verdict": "judge"})
        assert right(back) == first
        assert await judges.asked() == [bought, bought, bought]


async def test_a_rejudge_that_is_stopped_publishes_nothing(data: Path, store: Path) -> None:
    async with house(c=["no_verdict@judge=requests:20-100000"]) as judges:
        first = right(await api.evaluate(judges.config(store, data, panel=[], verdict="judge")))
        panel = {"panel": judges.panel, "verdict": "majority"}
        with pytest.raises(EndpointDownError):
            await api.rejudge("r", store=store, changes=panel)
        report = api.report("r", store=store)
        assert report.complete
        assert report.ran.judge is not None and report.ran.judge.name == "judge-a"
        assert {row.sample.id: row.score.correct for row in api.rows("r", store=store) if row.score} == first


async def test_derived_verdicts_follow_those_they_are_derived_from(data: Path, store: Path) -> None:
    async with house() as judges:
        await api.evaluate(judges.config(store, data, limit=6))
        settled = verdicts(store, "majority")
        changes = "SELECT total_changes()"
        assert stored(store, changes) == [(0,)]
        version = stored(store, "PRAGMA data_version")
        for _ in range(2):
            assert api.report("r", store=store).complete
        assert stored(store, "PRAGMA data_version") == version
        # A process that died before it derived them, and one judge's word that came later.
        stored(store, "DELETE FROM verdict WHERE judge_id = (SELECT id FROM judge WHERE name = 'majority')")
        stored(store, "UPDATE verdict SET correct = NULL WHERE judge_id = 2 AND sample_id = 1")
        assert api.report("r", store=store).complete
        assert verdicts(store, "majority") == settled
        stored(store, "UPDATE verdict SET correct = NULL WHERE judge_id = 3 AND sample_id = 1")
        assert api.report("r", store=store).rows.unjudged == 1
        assert verdicts(store, "majority")["row-0"] is None
        # Votes on another reading of the reply are no votes on this one.
        change = "UPDATE verdict SET correct = 1 - correct, prompt_sha = x'00' WHERE sample_id = 2"
        stored(store, f"{change} AND judge_id = 2")
        assert api.report("r", store=store).rows.unjudged == 1
        assert verdicts(store, "majority")["row-1"] == settled["row-1"]


async def test_each_judges_verdicts_are_found_again_by_the_next_run(data: Path, store: Path) -> None:
    async with house() as judges:
        await api.evaluate(judges.config(store, data))
        asked = await judges.asked()
        other = await api.evaluate(judges.config(store, data, name="second", model="m2"))
        assert other.complete
        prompts = {record.content for record in await calls(judges.a, "judge")}
        assert await judges.asked() == [len(prompts)] * 3
        assert len(prompts) == asked[0], "the second model answers like the first, so nothing is bought"
        (keys,) = stored(store, "SELECT count(DISTINCT prompt_sha) FROM call WHERE judge_id IS NOT NULL")
        assert keys == (len(prompts),), "the key is stored with each reply"


async def test_money_is_shared(data: Path, store: Path) -> None:
    prices = {"input_price": 100.0, "output_price": 100.0}
    async with house() as judges:
        settings = judges.config(
            store,
            data,
            judge={"model": "judge-a", **prices},
            panel=[judges.judge("b") | prices, judges.judge("c") | prices],
            max_cost=1.0,
            max_tokens=200,
            **prices,
        )
        result = await api.evaluate(settings, check=False)
        assert result.exit_code == 6
        (spent,) = stored(store, "SELECT sum(cost_usd) FROM call")[0]
        assert 0.5 < spent <= 1.0
        with pytest.raises(ConfigError, match=r"give `input_price` in the \[\[panel\]\] table of c"):
            without = [judges.judge("b") | prices, judges.judge("c")]
            await api.resume("r", store=store, changes={"panel": without, "max_cost": 9.0})


async def test_progress_counts_rows_not_verdicts(data: Path, store: Path) -> None:
    seen: list[Monitor] = []

    async def watch(monitor: Monitor, stages: Any) -> None:
        seen.append(monitor)
        assert [stage.label for stage in stages.panel.stages] == ["judge-a", "b", "c"]
        await asyncio.Event().wait()

    faults = [*about(3, fault="no_verdict")]
    async with house(b=faults, c=faults) as judges:
        await api.evaluate(judges.config(store, data), watch=watch, check=False)
        assert (seen[0].done, seen[0].open, seen[0].judge_waiting, seen[0].unjudged) == (ROWS, 0, 0, 1)
        await api.resume("r", store=store, watch=watch, check=False)
        monitor = seen[1]
        assert (monitor.done_before + monitor.done, monitor.open, monitor.judge_waiting) == (ROWS, 0, 0)
        assert (monitor.done, monitor.unjudged) == (1, 1)


async def test_two_of_a_kind_are_refused(data: Path, store: Path) -> None:
    async with house() as judges:
        twin = judges.judge("b") | {"name": "twin"}
        with pytest.raises(ConfigError, match="the judges b and twin are the same model"):
            await api.evaluate(judges.config(store, data, panel=[judges.judge("b"), twin]))
        assert await judges.asked() == [0, 0, 0]


async def test_the_doctor_and_the_dry_run_look_at_each_judge(data: Path, store: Path) -> None:
    async with house(c=["truncated@judge=1.0"]) as judges:
        settings = judges.config(store, data)
        found = [finding for finding in await api.doctor(settings) if finding.about == "judge"]
        texts = "\n".join(finding.text for finding in found)
        assert "verdict of judge-a: 0." in texts or "verdict of judge-a: 1." in texts
        assert "judge-b at 127.0.0.1 replied" in texts
        (bad,) = [finding for finding in found if not finding.ok]
        assert "no usable verdict of c: it spent its token limit" in bad.text
        assert "raise `max_tokens` in the [[panel]] table of c" in bad.text
        assert await judges.asked() == [1, 1, 1]
        dry = api.dry_run(settings)
        assert [(side.name, side.calls) for side in dry.judges] == [(n, ROWS) for n in ("judge-a", "b", "c")]
        assert await judges.asked() == [1, 1, 1]
