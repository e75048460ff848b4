"""The simulator as a process of its own, and the bare endpoint."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

ANTHROPIC_HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
BODY = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "What?"}]}


@contextmanager
def _process(*flags: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    command = [sys.executable, "-m", "mmbu_async.simulator", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


async def _post(url: str, body: Any, headers: dict[str, str] | None = None) -> Any:
    async with aiohttp.ClientSession() as client, client.post(url, json=body, headers=headers) as response:
        assert response.status == 200
        return await response.json()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_says_where_it_listens_and_ends_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "log.jsonl"
    with _process("--log", str(log), "--fault", "think=1", "--latency", "uniform:0,0.01") as (process, ready):
        value = await _post(ready["openai"] + "/chat/completions", BODY)
        assert value["choices"][0]["message"]["content"].startswith("<think>")
        await _post(ready["anthropic"] + "/v1/messages", BODY, ANTHROPIC_HEADERS)
        process.send_signal(number)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "")
    assert [json.loads(line)["number"] for line in log.read_text("utf-8").splitlines()] == [1, 2]


async def test_it_listens_on_the_loopback_address_alone() -> None:
    with _process() as (_, ready):
        port = int(ready["url"].rpartition(":")[2])
        with socket.socket() as other:
            # Another loopback address than the one it is bound to stands for every other interface.
            assert other.connect_ex(("127.0.0.2", port)) != 0


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--latency", "soon"], "latency 'soon' cannot be read"),
        (["--fault", "meteor=1"], "none of"),
        (["--schedule", "/nowhere/schedule"], "/nowhere/schedule"),
        (["--rpm", "0"], "rpm"),
        (["--bare", "--latency", "exponential:1"], "--bare"),
    ],
)
def test_wrong_flags_are_one_sentence(flags: list[str], words: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mmbu_async.simulator", *flags], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert words in done.stderr
    assert done.stdout == ""


def _with_image(size: int) -> dict[str, Any]:
    url = "data:image/png;base64," + "A" * size
    content = [{"type": "text", "text": "What?"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


async def test_the_bare_endpoint_answers_both_formats_and_counts() -> None:
    with _process("--bare", "--latency", "0.01") as (process, ready):
        openai, anthropic = ready["url"] + "/v1/chat/completions", ready["url"] + "/v1/messages"
        for size in (100, 300_000):
            value = await _post(openai, _with_image(size))
            assert value["choices"][0]["message"]["content"].endswith("<answer>[10, 10, 20, 20]</answer>")
        assert (await _post(anthropic, _with_image(100)))["content"][0]["text"].endswith("</answer>")
        long = BODY | {"messages": [{"role": "user", "content": "x" * 200_000}]}
        for body in (BODY, long):
            assert (await _post(anthropic, body))["content"][0]["text"].endswith("[RESULT] 1")
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert json.loads(output) == {"model_requests": 3, "judge_requests": 2}
