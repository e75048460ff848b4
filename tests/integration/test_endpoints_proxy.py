"""Calls through the proxy that the environment names, as in hospital networks."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from mmbu_async.endpoints.transport import AiohttpTransport, Timeouts, environment_proxy
from mmbu_async.simulator import Simulator, SimulatorConfig

URL = "http://model.invalid/v1/chat/completions"
BODY = orjson.dumps({"model": "m", "messages": [{"role": "user", "content": "How many?"}]})


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def test_a_call_goes_through_the_proxy_and_takes_no_password_from_netrc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login someone password of-another-service\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with Simulator(SimulatorConfig(keys=frozenset({"right"}))) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        timeouts = Timeouts(total=10, connect=10, idle=10)
        async with AiohttpTransport(timeouts, environment_proxy(URL)) as transport:
            response = await transport.post(URL, {"Authorization": "Bearer right"}, BODY)
        assert response.status == 200
        assert len(proxy.log) == 1


def test_the_environment_names_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environment_proxy(URL) is None
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.hospital.example:3128")
    assert environment_proxy(URL) == "http://proxy.hospital.example:3128"
    assert environment_proxy("https://model.invalid/v1") is None
    monkeypatch.setenv("NO_PROXY", "model.invalid,localhost")
    assert environment_proxy(URL) is None
    assert environment_proxy("http://elsewhere.invalid/v1") == "http://proxy.hospital.example:3128"
