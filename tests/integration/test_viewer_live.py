"""The row browser beside a run that is under way, over stores that are behind, and as a program."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest

from mmbu_async import api
from mmbu_async.errors import ConfigError, RunNotFoundError, StoreError
from mmbu_async.simulator import Latency
from mmbu_async.viewer.desk import Desk
from mmbu_async.viewer.server import serving
from tests.acceptance.program import kill, start
from tests.stored_run import CONFIG, RunMaker
from tests.viewer_kit import Page, fetch, served
from tests.whole_run import ROWS, complete, config, simulated, stored


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is shown is read anew whenever the store was written to."""
    monkeypatch.setattr("mmbu_async.viewer.app.Desk", partial(Desk, refresh_s=0.0))
    monkeypatch.setattr("mmbu_async.viewer.desk.REST", 0)


def outcomes(page: Page) -> dict[str, int]:
    """Rows by outcome, as the tabs count them."""
    words = " ".join(page.text.split()).split()
    names = {"Right", "Wrong", "Unjudged", "Failed", "Pending"}
    return {
        name: int(count) for name, count in itertools.pairwise(words) if name in names and count.isdigit()
    }


def first_reply(store: Path) -> None:
    """Wait for it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        # The store may not be there yet, nor its tables.
        with contextlib.suppress(sqlite3.OperationalError):
            if store.exists() and stored(store, "SELECT 1 FROM call WHERE judge_id IS NULL"):
                return
        time.sleep(0.01)
    raise AssertionError("no reply came")


@pytest.mark.usefixtures("keys", "eager")
async def test_a_live_run_is_shown_as_it_grows_and_is_not_disturbed(data: Path, store: Path) -> None:
    async with simulated(latency=Latency("fixed", 0.25)) as simulator:
        settings = config(simulator, store, data, concurrency=4)
        running = asyncio.create_task(api.evaluate(settings))
        await asyncio.to_thread(first_reply, store)
        pending: list[int] = []
        async with serving(store, ["r"]) as address:
            while not running.done():
                page = (await asyncio.to_thread(fetch, address)).page
                found = outcomes(page)
                assert sum(found.values()) == ROWS
                pending.append(found.get("Pending", 0))
                await asyncio.to_thread(fetch, address, "row?key=1")
                await asyncio.to_thread(fetch, address, "?q=technique&outcome=right")
            await complete(await running, store)
            # What is shown lags by the page that found it behind.
            for _ in range(200):
                page = (await asyncio.to_thread(fetch, address)).page
                if outcomes(page).get("Right", 0) + outcomes(page).get("Wrong", 0) == ROWS:
                    break
                await asyncio.sleep(0.02)
    assert outcomes(page).keys() <= {"Right", "Wrong"}
    assert max(pending) > min(pending)
    assert pending == sorted(pending, reverse=True)


@pytest.mark.usefixtures("keys")
async def test_a_run_that_was_killed_is_shown_with_its_scores(data: Path, store: Path) -> None:
    """Its rows were never scored: the browser scores them as a report would."""
    async with simulated() as simulator:
        await api.evaluate(config(simulator, store, data, limit=6))
        with closing(sqlite3.connect(store, isolation_level=None)) as connection:
            connection.execute("DELETE FROM score WHERE sample_id > 3")
            connection.execute("DELETE FROM call WHERE sample_id > 5")
            connection.execute("DELETE FROM verdict WHERE sample_id > 5")
            connection.execute("UPDATE session SET ended = NULL, ended_at = NULL")
        async with serving(store, ["r"]) as address:
            found = outcomes((await asyncio.to_thread(fetch, address)).page)
    assert found.get("Right", 0) + found.get("Wrong", 0) == 5
    assert found["Pending"] == 1


def test_what_cannot_be_brought_up_to_date_is_said_and_shown_all_the_same(tmp_path: Path) -> None:
    with ExitStack() as stack:
        made = RunMaker(tmp_path / "store.sqlite", stack)
        rows = [{"id": "only", "reply": "<answer>x</answer>", "question": "What is it?"}]
        gone = {**CONFIG, "benchmark": str(tmp_path / "gone.toml")}
        store, run = made(rows, config=gone, scored=False)
        with served(store.path, run.name) as address:
            listing = fetch(address).page
            row = fetch(address, "row?key=1").page
    assert "Scores of run “test-run” could not be brought up to date" in listing.text
    assert outcomes(listing) == {"Unjudged": 1}
    text = " ".join(row.text.split())
    assert "need the benchmark's rules, which are not known" in text
    assert "gone.toml: there is no such file" in text
    assert "What is it?" in text
    assert "<answer>x</answer>" in text


def test_a_store_that_vanishes_is_a_sentence(program_store: Path) -> None:
    with served(program_store, "night") as address:
        program_store.unlink()
        answer = fetch(address)
        assert answer.status == 500
        assert f"{program_store}: there is no store" in " ".join(answer.page.text.split())


async def test_runs_and_stores_that_are_not_there_are_named(tmp_path: Path, store: Path) -> None:
    with pytest.raises(RunNotFoundError, match="there is no store here"):
        async with serving(tmp_path / "nowhere.sqlite", ["r"]):
            pass
    (tmp_path / "other.sqlite").write_text("x" * 5000)
    with pytest.raises(StoreError, match=r"other\.sqlite: is not a store"):
        async with serving(tmp_path / "other.sqlite", ["r"]):
            pass


@pytest.fixture
def program_store(tmp_path: Path) -> Path:
    with ExitStack() as stack:
        made = RunMaker(tmp_path / "store.sqlite", stack)
        made([{"id": "only", "reply": "x", "correct": True}], name="night")
    return tmp_path / "store.sqlite"


def test_ctrl_c_ends_the_program_at_once_and_quietly(program_store: Path) -> None:
    process = start("view", "night", "--store", str(program_store), "--no-open")
    line = process.stdout.readline()
    assert line.startswith("Rows of night: http://127.0.0.1:")
    address = line.split()[3]
    assert fetch(address).status == 200
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    # A browser keeps its connections open, and one is in the middle of asking.
    with (
        socket.create_connection((host, int(port))) as idle,
        socket.create_connection((host, int(port))) as busy,
    ):
        idle.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert idle.recv(100).startswith(b"HTTP/1.1 200")
        busy.sendall(b"GET / HTTP/1.1\r\nHost: loc")
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out, err) == (0, "", "")
    assert time.monotonic() - began < 5


STUCK = """
import time
from mmbu_async.__main__ import main
from mmbu_async.viewer import pictures

def stuck(*given):
    print("stuck", flush=True)
    time.sleep(600)

pictures.prepare = stuck
main()
"""


def test_ctrl_c_waits_for_no_thread(tmp_path: Path) -> None:
    """An image can take its time, and a hub's dataset still more."""
    data = tmp_path / "data"
    (data / "images").mkdir(parents=True)
    (data / "metadata.jsonl").write_text("{}\n")
    (data / "images" / "a.png").write_bytes(b"x")
    with ExitStack() as stack:
        make = RunMaker(tmp_path / "store.sqlite", stack)
        make([{"id": "only", "reply": "x", "correct": True}], config={**CONFIG, "data": str(data)})
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            STUCK,
            "view",
            "test-run",
            "--store",
            str(tmp_path / "store.sqlite"),
            "--no-open",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    address = process.stdout.readline().split()[3]
    host, port = address.removeprefix("http://").rstrip("/").split(":")
    with socket.create_connection((host, int(port))) as asking:
        asking.sendall(b"GET /image?key=1&n=0 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert process.stdout.readline() == "stuck\n"
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "", "")
    assert time.monotonic() - began < 5


def test_a_busy_port_is_one_sentence(program_store: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start("view", "night", "--store", str(program_store), "--no-open", "--port", str(port))
        out, err = process.communicate(timeout=60)
    assert process.returncode == ConfigError.exit_code
    assert out == ""
    said = " ".join(err.split())
    assert said.startswith(f"error: port {port} of 127.0.0.1 cannot be had (Address already in use); ")
    assert said.endswith("give another with --port, or leave it out for any free one.")
    assert err.count("\n") == 1


def test_an_unknown_run_is_one_sentence(program_store: Path) -> None:
    process = start("view", "nigth", "--store", str(program_store), "--no-open")
    _, err = process.communicate(timeout=60)
    assert process.returncode == RunNotFoundError.exit_code
    assert "there is no run 'nigth'; did you mean 'night'?" in err


def test_it_listens_on_the_loopback_interface_alone(program_store: Path) -> None:
    process = start("view", "night", "--store", str(program_store), "--no-open")
    try:
        port = int(process.stdout.readline().split()[3].rstrip("/").rpartition(":")[2])
        tables = [Path(f"/proc/net/{name}") for name in ("tcp", "tcp6")]
        lines = [
            line.split() for table in tables if table.exists() for line in table.read_text().splitlines()
        ]
        listening = [
            local for _, local, _, state, *_ in lines if state == "0A" and local.endswith(f":{port:04X}")
        ]
        assert listening in ([f"0100007F:{port:04X}"], [])
    finally:
        kill(process)
