"""The same run through every wire format comes to the same scores, and leaves no key behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mmbu_async import api
from mmbu_async.config import RunConfig
from mmbu_async.errors import EndpointError
from tests.simulated import BASES
from tests.whole_run import KEY, MINI, calls, config, replies, simulated, stops, stored

pytestmark = pytest.mark.usefixtures("keys")
KINDS = pytest.mark.parametrize("endpoint", list(BASES))


def scores(store: Path) -> list[tuple[Any, ...]]:
    return stored(store, "SELECT sample_id, answer, how, status, correct FROM score ORDER BY sample_id")


def keys_in(folder: Path) -> list[str]:
    return [file.name for file in folder.iterdir() if KEY.encode() in file.read_bytes()]


async def test_a_run_is_the_same_in_every_format(tmp_path: Path) -> None:
    """Model and judge, images and system message; every second format streamed."""
    found = {}
    for endpoint in BASES:
        store, stream = tmp_path / f"{endpoint}.sqlite", endpoint in ("responses", "anthropic")
        async with simulated(keys=frozenset({KEY})) as simulator:
            settings = config(simulator, store, MINI, endpoint, stream=stream, limit=12, preflight=True)
            result = await api.evaluate(settings)
            asked = await calls(simulator)
            judged = await calls(simulator, "judge")
        assert result.complete
        assert {record.kind for record in (*asked, *judged)} == {endpoint}
        assert {record.stream for record in asked} == {stream}
        assert len(replies(store)) == len(asked) == 12
        assert judged
        found[endpoint] = scores(store)
        tokens = stored(store, "SELECT min(input_tokens), min(output_tokens), min(usage_reported) FROM call")
        assert min(tokens[0]) > 0
    assert not keys_in(tmp_path)
    assert any(right for *_, right in found["openai"])
    assert found == dict.fromkeys(BASES, found["openai"])


@KINDS
async def test_a_wrong_key_stops_the_run_and_is_not_repeated(endpoint: str, store: Path, data: Path) -> None:
    async with simulated(keys=frozenset({"another"})) as simulator:
        error = await stops(config(simulator, store, data, endpoint), EndpointError, 4)
    assert "refuses the key in" in str(error)


async def test_azure_needs_an_address_and_a_key(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="is needed for azure"):
        RunConfig(model="m", endpoint="azure", store=store)
    monkeypatch.delenv("AZURE_OPENAI_API_KEY")
    settings = RunConfig(model="m", endpoint="azure", base_url="https://mine.openai.azure.com")
    with pytest.raises(Exception, match="set the environment variable AZURE_OPENAI_API_KEY"):
        settings.api_key()
