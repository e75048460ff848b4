"""Which rows a run is about, over several starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.errors import ConfigError, RunChangedError
from mmbu_async.simulator import Simulator
from tests.whole_run import MINI, config, simulated

pytestmark = pytest.mark.usefixtures("keys")


def settings(simulator: Simulator, store: Path, **changes: Any) -> Any:
    return config(simulator, store, MINI, **changes)


async def test_a_run_does_not_turn_into_one_about_other_rows(store: Path) -> None:
    async with simulated() as simulator:
        await api.evaluate(settings(simulator, store, task=("counting",)))
        selected = api.report("r", store=store).rows.selected
        for changes, words in (
            ({"task": ()}, r"task: \['counting'\] -> \[\]"),
            ({"task": ("classification",)}, r"-> \['classification'\]"),
            (
                {"task": ("counting",), "where": {"metadata_stain": "H&E"}},
                "where.metadata_stain: none -> H&E",
            ),
        ):
            with pytest.raises(RunChangedError, match=words):
                await api.evaluate(settings(simulator, store, **changes))
        found = api.report("r", store=store)
        assert found.rows.selected == selected
        assert found.ran.selection == {"task": ["counting"]}


async def test_a_limit_may_grow_and_not_shrink(store: Path) -> None:
    async with simulated() as simulator:
        await api.evaluate(settings(simulator, store, limit=3))
        await api.resume("r", store=store, changes={"limit": 5})
        with pytest.raises(RunChangedError, match="has 5 rows"):
            await api.evaluate(settings(simulator, store, limit=4))
        found = api.report("r", store=store)
        assert found.rows.selected == 5
        assert found.ran.selection == {"limit": 5}
        result = await api.evaluate(settings(simulator, store))
        assert result.counts.selected == result.counts.scored == 33


async def test_a_selection_without_rows_can_be_mended(store: Path) -> None:
    async with simulated() as simulator:
        with pytest.raises(ConfigError, match="matches --task countin  --where metadata_stain=x; loosen"):
            await api.evaluate(
                settings(simulator, store, task=("countin ",), where={"metadata_stain": "x"}, limit=1)
            )
        result = await api.evaluate(settings(simulator, store, task=("counting",), limit=1))
        assert result.complete
