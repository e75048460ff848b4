"""What the transport sends, and to whom: one request, our headers and nobody's passwords."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from mmbu_async.endpoints.transport import AiohttpTransport, Timeouts, TransportError, environment_proxy
from tests.misbehaving import Misbehaving, Request, response

LONG = Timeouts(total=20.0, connect=10.0, idle=10.0)


async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"{}"))


async def test_the_request_that_goes_out() -> None:
    async with Misbehaving(answer) as server, AiohttpTransport(LONG) as transport:
        await transport.post(server.url + "/v1/chat?x=1", {"Authorization": "Bearer sk-1"}, b'{"a":1}')
    (request,) = server.requests
    assert request.line == "POST /v1/chat?x=1 HTTP/1.1"
    assert request.body == b'{"a":1}'
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "mmbu-async"
    assert request.headers["content-length"] == "7"
    assert set(request.headers) <= {
        "host",
        "authorization",
        "content-type",
        "user-agent",
        "content-length",
        "accept-encoding",
    }


@pytest.mark.parametrize("entry", ["default", "machine 127.0.0.1"])
@pytest.mark.parametrize("headers", [{"Authorization": "Bearer sk-1"}, {"x-api-key": "sk-2"}, {}])
async def test_passwords_of_a_netrc_file_stay_there(
    entry: str, headers: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text(f"{entry} login somebody password secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    async with Misbehaving(answer) as server, AiohttpTransport(LONG) as transport:
        await transport.post(server.url, headers, b"{}")
        async with transport.stream(server.url, headers, b"{}"):
            pass
    for request in server.requests:
        assert request.headers.get("authorization") == headers.get("Authorization")
        assert request.headers.get("x-api-key") == headers.get("x-api-key")


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_is_not_followed(status: str) -> None:
    """The key would go with it."""
    async with Misbehaving(answer) as other:

        async def redirect(request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(response(b"", status=status, Location=other.url))

        async with Misbehaving(redirect) as server, AiohttpTransport(LONG) as transport:
            got = await transport.post(server.url, {"Authorization": "Bearer sk-1"}, b"{}")
            assert got.status == int(status[:3])
            assert got.headers["location"] == other.url
            async with transport.stream(server.url, {}, b"{}") as streamed:
                assert streamed.status == got.status
        assert other.connections == 0
        assert len(server.requests) == 2


async def test_cookies_are_not_kept() -> None:
    async def cookie(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"{}", Set_Cookie="track=me; Path=/"))

    async with Misbehaving(cookie) as server, AiohttpTransport(LONG) as transport:
        for _ in range(2):
            await transport.post(server.url, {}, b"{}")
    assert all("cookie" not in request.headers for request in server.requests)


async def test_connections_are_kept_alive() -> None:
    async with Misbehaving(answer) as server, AiohttpTransport(LONG) as transport:
        for _ in range(5):
            await transport.post(server.url, {}, b"{}")
    assert server.connections == 1


async def test_a_server_that_closes_idle_connections_costs_no_request() -> None:
    async def once(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"{}", Connection="close"))
        writer.close()

    async with Misbehaving(once) as server, AiohttpTransport(LONG) as transport:
        for _ in range(3):
            assert (await transport.post(server.url, {}, b"{}")).status == 200
    assert (server.connections, len(server.requests)) == (3, 3)


async def test_more_than_a_hundred_calls_are_under_way_at_once() -> None:
    """aiohttp's connector stops at 100 unless told otherwise: nobody would be answered here."""
    everybody = asyncio.Event()

    async def wait_for_all(request: Request, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) == 250:
            everybody.set()
        await everybody.wait()
        writer.write(response(b"{}"))

    async with Misbehaving(wait_for_all) as server, AiohttpTransport(LONG) as transport:
        replies = await asyncio.gather(*(transport.post(server.url, {}, b"{}") for _ in range(250)))
    assert [reply.status for reply in replies] == [200] * 250
    assert server.connections == 250


# ---------------------------------------------------------------- proxies


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://api.example/v1", "http://proxy.example:3128"),
        ("https://api.example/v1", "http://user:word@secure.example:8080"),
        ("https://inner.example/v1", None),
        ("https://inner.example:8443/v1", None),
        ("https://deep.inner.example/v1", None),
        ("http://localhost:8000/v1", None),
        ("http://127.0.0.1:8000/v1", None),
        ("http://127.9.9.9/v1", None),
        ("http://[::1]:8000/v1", None),
    ],
)
def test_the_proxy_of_an_address(environment: pytest.MonkeyPatch, url: str, proxy: str | None) -> None:
    environment.setenv("HTTP_PROXY", "proxy.example:3128")
    environment.setenv("HTTPS_PROXY", "http://user:word@secure.example:8080")
    environment.setenv("NO_PROXY", "inner.example,.other.example")
    assert environment_proxy(url) == proxy


def test_no_proxy(environment: pytest.MonkeyPatch) -> None:
    assert environment_proxy("https://api.example/v1") is None
    environment.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    environment.setenv("NO_PROXY", "*")
    assert environment_proxy("https://api.example/v1") is None


async def test_a_proxy_is_used() -> None:
    async with Misbehaving(answer) as proxy, AiohttpTransport(LONG, proxy.url) as transport:
        await transport.post("http://nonexistent.invalid/v1", {"Authorization": "Bearer sk-1"}, b"{}")
    (request,) = proxy.requests
    assert request.line == "POST http://nonexistent.invalid/v1 HTTP/1.1"
    assert request.headers["authorization"] == "Bearer sk-1"


async def test_a_proxy_that_refuses_is_named_without_its_password() -> None:
    async def refuse(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"", status="407 Proxy Authentication Required"))

    async with Misbehaving(refuse) as proxy:
        with_password = proxy.url.replace("http://", "http://somebody:secret@")
        async with AiohttpTransport(LONG, with_password) as transport:
            with pytest.raises(TransportError) as caught:
                await transport.post(
                    "https://nonexistent.invalid/v1", {"Authorization": "Bearer sk-1"}, b"{}"
                )
    assert str(caught.value) == "the proxy refuses the connection (407 Proxy Authentication Required)"
    assert not caught.value.sent
    (request,) = proxy.requests
    assert request.line.startswith("CONNECT nonexistent.invalid:443 ")
    assert request.headers.get("authorization") is None, "the key is not for the proxy"
