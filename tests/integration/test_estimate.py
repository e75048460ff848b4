"""The estimate before a run, against what the simulator charges for it."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mmbu_async import api
from mmbu_async.cli import show
from mmbu_async.config import RunConfig
from mmbu_async.pipeline.dryrun import DryRun
from mmbu_async.simulator.demo import draw_split
from tests.whole_run import ENDPOINTS, config, simulated, stored

pytestmark = pytest.mark.usefixtures("keys", "short_waits")

PRICES = {"input_price": 1.0, "output_price": 4.0}
CHARGED = (
    "SELECT count(*), sum(input_tokens), sum(output_tokens), sum(cost_usd) FROM call "
    "GROUP BY judge_id ORDER BY judge_id"
)


def estimated(dry: DryRun) -> list[tuple[float | None, ...]]:
    assert dry.model is not None
    sides = (dry.model, *dry.judges)
    return [(side.calls, side.input_tokens, side.output_tokens, side.cost_usd) for side in sides]


def learnt(dry: DryRun) -> list[int]:
    assert dry.model is not None
    return [side.replies for side in (dry.model, *dry.judges)]


def there(store: Path) -> bool:
    return store.exists()


def content(store: Path) -> bytes:
    return store.read_bytes()


def no_store(store: Path) -> None:
    store.write_text("no store of ours, and long enough to be looked at " * 20)


def printed(dry: DryRun) -> str:
    out = StringIO()
    show.dry_run(dry, Console(file=out, width=200))
    return out.getvalue()


@ENDPOINTS
async def test_twenty_rows_teach_what_the_rest_will_take(tmp_path: Path, store: Path, endpoint: str) -> None:
    data = draw_split(tmp_path / "drawn", rows=100, seed=1)
    async with simulated() as simulator:

        def settings(**changes: object) -> RunConfig:
            return config(simulator, store, data, endpoint, **{"judge": dict(PRICES)}, **PRICES, **changes)

        ruled = api.dry_run(settings())
        assert not there(store), "a dry run makes no store"
        assert learnt(ruled) == [0, 0]
        assert "Tokens of model m, judge claude-sonnet-5: by rules" in printed(ruled)
        await api.evaluate(settings(limit=20))
        before = content(store)
        dry = api.dry_run(settings())
        assert content(store) == before
        assert learnt(dry)[0] == 20
        assert 10 <= learnt(dry)[1] <= 20
        text = printed(dry)
        assert f"Tokens of model m: as in 20 of its replies in {store.name}." in text
        assert "by rules" not in text
        await api.evaluate(settings())
        charged = stored(store, CHARGED)
        assert [pytest.approx(side, rel=0.1) for side in charged] == estimated(dry)
        assert estimated(ruled)[0] != pytest.approx(charged[0], rel=0.1), "the rules alone are far off"


async def test_other_settings_or_another_model_teach_nothing(data: Path, store: Path) -> None:
    async with simulated() as simulator:
        await api.evaluate(config(simulator, store, data, limit=12))
        assert learnt(api.dry_run(config(simulator, store, data))) == [12, 12]
        assert learnt(api.dry_run(config(simulator, store, data, model="other"))) == [0, 12]
        assert (
            learnt(api.dry_run(config(simulator, store, data, params={"reasoning_effort": "high"})))[0] == 0
        )
        assert learnt(api.dry_run(config(simulator, store, data, judge={"max_tokens": 99}))) == [12, 0]
        at_home = simulator.url.replace("127.0.0.1", "localhost")
        assert learnt(api.dry_run(config(simulator, store, data, base_url=f"{at_home}/v1"))) == [0, 12]


async def test_a_store_that_cannot_be_read_is_named_and_stops_nothing(data: Path, store: Path) -> None:
    no_store(store)
    async with simulated() as simulator:
        dry = api.dry_run(config(simulator, store, data))
    assert learnt(dry) == [0, 0]
    assert store.name in dry.unread
    assert "The store was not learnt from: " in printed(dry)
