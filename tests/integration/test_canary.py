"""A canary for a key: after every failure of the failure table, and where an endpoint itself repeats it,
it is in no store, log, message, export, report or settings file."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import threading
import time
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mmbu_async import api
from mmbu_async.config import RunConfig
from mmbu_async.pipeline.inferring import InferStage
from mmbu_async.simulator import Fault, Simulator
from tests.canaries import JUDGE_KEY, MODEL_KEY, Program, assert_clean, beside, texts_in
from tests.misbehaving import Misbehaving, Request, response
from tests.whole_run import ROWS, simulated

pytestmark = pytest.mark.usefixtures("short_waits")

FATAL = (
    *(Fault.UNAUTHORIZED, Fault.FORBIDDEN, Fault.MODEL_NOT_FOUND, Fault.PAYMENT_REQUIRED, Fault.QUOTA),
    *(Fault.CREDIT_BALANCE, Fault.SPEND_LIMIT),
)
OF_JUDGES = (Fault.NO_VERDICT, Fault.OTHER_VERDICT)
OF_ROWS = tuple(fault for fault in Fault if fault not in FATAL)


@pytest.fixture
def program(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("OPENAI_API_KEY", MODEL_KEY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", JUDGE_KEY)
    monkeypatch.chdir(tmp_path)
    return Program(folder=tmp_path, capture=capfd, monkeypatch=monkeypatch)


def flags(model: str, judge: str, data: Path, store: Path, *more: str) -> list[str]:
    return [
        *("--name", "r", "--model", "m", "--base-url", f"{model}/v1", "--judge-base-url", judge),
        *("--data", str(data), "--store", str(store), "--concurrency", "8", "--max-attempts", "2"),
        *("--judge-max-attempts", "2", "--timeout", "2", "--judge-timeout", "2", "--no-preflight"),
        *more,
    ]


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


# ---------------------------------------------------------------- the failure table


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_every_failure_that_a_run_survives(program: Program, data: Path, store: Path, stream: bool) -> None:
    """Each row has a failure of its own, of the model and of the judge."""
    rules = []
    for number, fault in enumerate(OF_ROWS):
        roles = ("judge",) if fault in OF_JUDGES else ("model", "judge")
        rules += [f"{fault.value}@{role}=text:picture number {number + 1}?" for role in roles]
    assert len(OF_ROWS) < ROWS
    with beside(lambda: simulated(*rules, retry_after_s=None)) as simulator:
        given = flags(simulator.url, simulator.url, data, store, *(["--stream"] if stream else []))
        code, printed = program("run", "mmbu-public", *given, "--log-json")
        assert code in (3, 5), printed
        assert '"level":"warning"' in printed
        code, _ = program("resume", "r", "--store", str(store), "--log-file", str(program.folder / "a.jsonl"))
        assert code in (3, 5)
        # Which failures a resume meets before it gives up is a matter of order.
        assert any("kind" in line for line in lines_of(program.folder / "a.jsonl"))
        code, _ = program("rejudge", "r", "--failed", "--store", str(store))
        assert code in (3, 5)
        program("doctor", "mmbu-public", *given)
        program("run", "mmbu-public", *given, "--write-config", str(program.folder / "night.toml"))
        program("run", "mmbu-public", *given, "--dry-run")
        assert any(record.fault for record in simulator.log)
    program.everything_about(store)


@pytest.mark.parametrize("role", ["model", "judge"])
@pytest.mark.parametrize("fault", FATAL, ids=lambda fault: fault.value)
def test_every_failure_that_ends_a_run(
    program: Program, data: Path, store: Path, fault: Fault, role: str
) -> None:
    with beside(lambda: simulated(f"{fault.value}@{role}=requests:5-100000")) as simulator:
        given = flags(simulator.url, simulator.url, data, store)
        code, printed = program("run", "mmbu-public", *given, "--log-json")
        assert code == 4, printed
        assert printed.splitlines()[-1].startswith("error: ")
        program("doctor", "mmbu-public", *given)
    program.everything_about(store)


def test_ends_that_are_wanted_and_starts_that_are_refused(program: Program, data: Path, store: Path) -> None:
    names = ("--input-price", "--output-price", "--judge-input-price", "--judge-output-price")
    prices = [word for name in names for word in (name, "1000")]
    with beside(lambda: simulated()) as simulator:
        given = flags(simulator.url, simulator.url, data, store)
        assert program("run", "mmbu-public", *given, *prices, "--max-cost", "5")[0] == 6
        assert program("run", "mmbu-public", *given, "--temperature", "1")[0] == 2
        assert program("run", "mmbu-public", *given, "--rpm", "fast")[0] == 2
        assert program("run", "mmbu-public", *given, "--param", f"api_key={MODEL_KEY}")[0] == 2
        for key in (MODEL_KEY, JUDGE_KEY):
            assert program("run", "mmbu-public", *given, "--api-key-env", key)[0] == 2
            assert program("run", "mmbu-public", *given, "--judge-api-key-env", key)[0] == 2
        assert program("run", "mmbu-public", *given, "--base-url", f"http://x/v1?key={MODEL_KEY}")[0] == 2
        assert program("run", "mmbu-public", *given, "--base-url", f"https://u:{MODEL_KEY}@x/v1")[0] == 2
        assert program("run", "mmbu-public", *given, "--data", str(program.folder / "none"))[0] == 2
    nobody = flags("http://127.0.0.1:9", "http://127.0.0.1:9", data, store)
    assert program("run", "mmbu-public", *nobody, *prices, "--max-cost", "1000000")[0] == 5
    assert program("doctor", "mmbu-public", *nobody)[0] == 1
    program.everything_about(store)


def test_a_signal_in_the_middle(program: Program, data: Path, store: Path) -> None:
    with beside(lambda: simulated("timeout@model=text:number 3?")) as simulator:

        def interrupt() -> None:
            while len(simulator.log) < 5:
                time.sleep(0.01)
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0.2)

        thread = threading.Thread(target=interrupt)
        thread.start()
        given = flags(simulator.url, simulator.url, data, store, "--timeout", "60")
        code, printed = program("run", "mmbu-public", *given)
        thread.join()
        assert code == 130, printed
    program.everything_about(store)


def test_a_failure_of_our_own(
    program: Program, data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A traceback shows lines of code and messages, and these hold no key."""

    def broken(self: InferStage, failure: Any) -> None:
        raise ZeroDivisionError(
            f"a bug, met by {self.client!r} with {self.client.settings!r} after {failure!r}"
        )

    monkeypatch.setattr(InferStage, "_consider", broken)
    with beside(lambda: Misbehaving(echoing(ECHOES["401, message"]))) as server:
        given = flags(server.url, server.url, data, store, "--log-file", str(program.folder / "b.jsonl"))
        with pytest.raises(ZeroDivisionError) as caught:
            program("run", "mmbu-public", *given)
    assert_clean("".join(traceback.format_exception(caught.value)), "a traceback")
    assert_clean("".join(program.capture.readouterr()), "what was printed")
    program.everything_about(store)


# ---------------------------------------------------------------- before it goes out


def test_where_a_key_may_stray_is_said_before_the_first_call(
    program: Program, data: Path, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with beside(lambda: simulated()) as simulator:
        given = flags(simulator.url, simulator.url, data, store, "--limit", "2")
        _, at_home = program("run", "mmbu-public", *given)
        assert "plain http" not in at_home
        # As if the simulator stood elsewhere.
        monkeypatch.setattr("mmbu_async.endpoints.safety.is_local", lambda host: False)
        _, printed = program("resume", "r", "--limit", "4", "--store", str(store))
        said = [line for line in printed.splitlines() if " warning " in line]
        assert len(said) == 4, printed
        assert "the key in OPENAI_API_KEY goes to 127.0.0.1, which is not the maker's own address" in said[0]
        assert "--base-url is plain http, so that the key, prompts and images can be read" in said[1]
        assert "--judge-api-key-env ANTHROPIC_API_KEY" in said[2]
        assert "--judge-base-url is plain http" in said[3]
        _, printed = program("doctor", "mmbu-public", *given)
        assert printed.count("is plain http") == 2
        named = ("--api-key-env", "OPENAI_API_KEY", "--judge-api-key-env", "ANTHROPIC_API_KEY")
        _, printed = program("resume", "r", "--limit", "5", "--store", str(store), *named)
        assert "which is not the maker's own address" not in printed


# ---------------------------------------------------------------- an endpoint that repeats the key

Echo = Callable[[str], bytes]
"""From the key that came in to the whole response."""


def openai(message: Mapping[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": more.pop("finish_reason", "stop")}
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    return json.dumps({"id": "c-1", "model": "m-1", "choices": [choice], "usage": usage} | more).encode()


def anthropic(text: str, **more: Any) -> bytes:
    usage = {"input_tokens": 10, "output_tokens": 5}
    plain = {"id": "c-1", "type": "message", "model": "m-1", "stop_reason": "end_turn", "usage": usage}
    return json.dumps({"content": [{"type": "text", "text": text}]} | plain | more).encode()


def complaint(text: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": "t", "message": text, "code": text}}).encode()


def streamed(*texts: str) -> bytes:
    chunks = [{"model": "m-1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    events = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return response(events + b"data: [DONE]\n\n", Content_Type="text/event-stream")


def said(key: str) -> str:
    return f"the key {key} was sent"


ECHOES: dict[str, Echo] = {
    "401, message": lambda key: response(complaint(said(key)), status="401 No"),
    "400, message": lambda key: response(complaint(said(key)), status="400 No"),
    "400, cut in the key": lambda key: response(complaint("x" * 465 + key), status="400 No"),
    "400, plain text": lambda key: response(said(key).encode(), status="400 No"),
    "400, a page": lambda key: response(f"<html><p>{key}</p></html>".encode(), status="400 No"),
    "500, message": lambda key: response(complaint(said(key)), status="500 No"),
    "429, message": lambda key: response(complaint(said(key)), status="429 No"),
    "404, header": lambda key: response(complaint("no"), status="404 No", x_request_id=key, request_id=key),
    "302, address": lambda key: response(
        b"", status="302 Found", Location=f"https://x.example/{'y' * 150}/{key}/z"
    ),
    "200, no JSON": lambda key: response(f"{{{said(key)}".encode()),
    "200, error object": lambda key: response(complaint(said(key))),
    "200, no reply": lambda key: response(json.dumps({"choices": [], "detail": said(key)}).encode()),
    "200, text": lambda key: response(openai({"content": f"<answer>{key}</answer>"})),
    "200, reasoning": lambda key: response(openai({"content": "7", "reasoning_content": said(key)})),
    "200, refusal": lambda key: response(openai({"content": None, "refusal": said(key)})),
    "200, end": lambda key: response(openai({"content": "7"}, finish_reason=key)),
    "200, model": lambda key: response(openai({"content": "7"}, model=key, id=key)),
    "200, header": lambda key: response(
        openai({"content": "7"}), x_request_id=key, request_id=key, Server=key
    ),
    "200, stream": lambda key: streamed("<answer>", key[:9], key[9:], "</answer>"),
    "200, broken stream": lambda key: response(
        b'data: {"choices": [ ' + key.encode() + b"\n\n", Content_Type="text/event-stream"
    ),
    "no HTTP": lambda key: f"{key} is no status line\r\n\r\n".encode(),
}
OF_A_JUDGE: dict[str, Echo] = {
    "400, message": ECHOES["400, message"],
    "500, message": ECHOES["500, message"],
    "200, verdict": lambda key: response(anthropic(f"As {key} says. [RESULT] 1")),
    "200, no verdict": lambda key: response(anthropic(said(key))),
    "200, end": lambda key: response(anthropic("[RESULT] 1", stop_reason=key, model=key)),
    "200, header": lambda key: response(anthropic("[RESULT] 1"), request_id=key),
}


def echoing(echo: Echo) -> Callable[[Request, asyncio.StreamWriter], Awaitable[None]]:
    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        key = request.headers.get("x-api-key") or request.headers["authorization"].removeprefix("Bearer ")
        assert key in (MODEL_KEY, JUDGE_KEY)
        writer.write(echo(key))
        await writer.drain()
        writer.close()

    return answer


@pytest.mark.parametrize("where", ECHOES)
def test_a_model_that_repeats_the_key(program: Program, data: Path, store: Path, where: str) -> None:
    with (
        beside(lambda: Misbehaving(echoing(ECHOES[where]))) as server,
        beside(lambda: simulated()) as simulator,
    ):
        given = flags(server.url, simulator.url, data, store, "--limit", "4")
        given += ["--stream"] if "stream" in where else []
        code, printed = program("run", "mmbu-public", *given, "--log-json")
        assert code in (0, 3, 4, 5), printed
        assert server.requests, "the key was sent"
        program("resume", "r", "--store", str(store))
        program("doctor", "mmbu-public", *given)
    program.everything_about(store)


@pytest.mark.parametrize("where", OF_A_JUDGE)
def test_a_judge_that_repeats_the_key(program: Program, data: Path, store: Path, where: str) -> None:
    with (
        beside(lambda: simulated()) as simulator,
        beside(lambda: Misbehaving(echoing(OF_A_JUDGE[where]))) as server,
    ):
        given = flags(simulator.url, server.url, data, store, "--limit", "4")
        code, printed = program("run", "mmbu-public", *given)
        assert code in (0, 3, 4, 5), printed
        assert server.requests, "the key was sent"
        program("rejudge", "r", "--store", str(store), "--log-json")
    program.everything_about(store)


def test_what_is_looked_for_would_be_found(program: Program, tmp_path: Path) -> None:
    """In each form of file, and in other spellings."""
    rows = {"text": [f"padding {MODEL_KEY} padding"] * 50}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", compression="zstd")
    with sqlite3.connect(tmp_path / "b.sqlite") as connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES (?)", (said(JUDGE_KEY),))
    connection.close()
    content = b64encode(f"a,b\n1,{JUDGE_KEY}".encode()).decode()
    (tmp_path / "c.html").write_text(f'<a href="data:text/csv;base64,{content}">')
    (tmp_path / "d.jsonl").write_text(json.dumps({"x": MODEL_KEY[: len(MODEL_KEY) // 2]}))
    (tmp_path / "e.log").write_text(b64encode(MODEL_KEY.encode()).decode())
    for file in sorted(tmp_path.iterdir()):
        with pytest.raises(AssertionError, match="a key stands in"):
            for text in texts_in(file):
                assert_clean(text, str(file))


async def test_a_redirect_takes_the_key_nowhere(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the address that is named nor another port of the same host hears of it."""
    # The simulator would note whoever comes.
    async with Simulator() as elsewhere:

        async def away(request: Request, writer: asyncio.StreamWriter) -> None:
            writer.write(
                response(b"", status="307 Temporary", Location=f"{elsewhere.url}/v1/chat/completions")
            )

        async with Misbehaving(away) as server:
            settings = {"model": "m", "base_url": f"{server.url}/v1", "judge": {"base_url": server.url}}
            monkeypatch.setenv("OPENAI_API_KEY", MODEL_KEY)
            findings = await api.doctor(RunConfig.model_validate(settings | {"data": str(data)}))
            assert any("redirects are not followed" in finding.text for finding in findings)
            assert server.requests[0].headers["authorization"] == f"Bearer {MODEL_KEY}"
        assert len(elsewhere.log) == 0
