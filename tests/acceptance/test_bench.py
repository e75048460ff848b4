"""`mmbu bench` as its user runs it: a sweep, a search, what is shown of them, mistakes in one line each.

What measures is a process of its own beside the simulator's; what only looks at a store, or refuses, is the
same command line in this process.
"""

from __future__ import annotations

import csv
import json
import re
import shlex
from pathlib import Path

import pytest

from tests.acceptance.program import MINI, mmbu, simulator
from tests.canaries import Program
from tests.pages import read_page

SMALL = ("--image", "64x48", "--reply-tokens", "20")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def program(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    return Program(folder=tmp_path, capture=capfd, monkeypatch=monkeypatch)


def test_a_sweep_and_everything_that_is_shown_of_it(tmp_path: Path, store: Path, program: Program) -> None:
    flags = ("--servers", "4", "--latency", "0.01", "--tokens-per-second", "2000", "--reply-tokens", "20")
    place = ("--store", str(store))
    with simulator(tmp_path / "log", *flags, "--blind") as server:
        address = ("--model", "m", "--base-url", f"{server.url}/v1")
        load = ("--concurrency", "1,4,16", "--requests-per-stage", "40", "--stream")
        priced = ("--input-price", "1", "--output-price", "4")
        planned = ("--plan-for", "mmbu-public", "--data", str(MINI))
        done = mmbu("bench", *address, *SMALL, *load, *place, *priced, *planned)
        assert done.returncode == 0, done.stderr
        code, printed = program("bench", "run", *address, *SMALL, *load, *place, "--name", "again")
        assert code == 0, printed
    assert done.stdout.startswith("Bench bench-m: m\n")
    for name in ("1 at once", "4 at once", "16 at once"):
        assert name in done.stdout
    assert re.search(r"Settings --concurrency \d+", done.stdout)
    assert re.search(r"Expected mmbu-public, \d+ rows: .* and (under )?\$", done.stdout)
    assert "bench-m" in program("bench", "list", *place)[1]
    # Nothing is asked of anybody for these.
    page, values, table = (tmp_path / f"b.{ending}" for ending in ("html", "json", "csv"))
    for out in (page, values, table):
        assert program("bench", "show", "bench-m", *place, "--out", str(out))[0] == 0
    read_page(page.read_text())
    found = json.loads(values.read_text())
    assert [part["load"]["name"] for part in found["parts"]] == ["1 at once", "4 at once", "16 at once"]
    assert len(list(csv.DictReader(table.open()))) == 120
    assert "between tokens" in program("bench", "show", "bench-m", *place, "--all")[1]
    code, printed = program("bench", "compare", "bench-m", "again", *place)
    assert code == 0, printed
    assert "latency p50" in printed
    assert "95 % interval" in printed


def test_what_is_recommended_is_what_mmbu_run_takes(tmp_path: Path, store: Path) -> None:
    place = ("--store", str(store))
    with simulator(tmp_path / "log", "--latency", "0.02") as server:
        flags = ("--model", "m", "--base-url", f"{server.url}/v1", "--data", str(MINI))
        ends = ("--concurrency", "2,4", "--requests-per-stage", "24")
        priced = ("--input-price", "1", "--output-price", "4")
        done = mmbu("bench", "mmbu-public", *flags, *ends, *place, *priced, "--score")
        assert done.returncode == 0, done.stderr
        assert re.search(r"Expected mmbu-public, \d+ rows: .* and (under )?\$", done.stdout)
        assert "right" in done.stdout
        command = re.search(r"^Run +mmbu (run .*)$", done.stdout, re.MULTILINE)
        assert command is not None
        judge = ("--judge-endpoint", "openai", "--judge-base-url", f"{server.url}/v1")
        run = mmbu(*shlex.split(command[1]), *place, *judge)
        assert run.returncode in (0, 3), run.stderr


def test_a_search_finds_the_capacity_and_says_what_gave_way(tmp_path: Path, store: Path) -> None:
    # Slow enough that a machine which is busy with other things still serves and asks in time.
    flags = ("--servers", "4", "--latency", "0.12", "--even", "--reply-tokens", "20", "--blind")
    with simulator(tmp_path / "log", *flags) as server:
        done = mmbu(
            *("bench", "--model", "m", "--base-url", f"{server.url}/v1", *SMALL, "--store", str(store)),
            *("--objective", "p95 <= 2s", "--objective", "errors <= 1%", "--arrivals", "constant"),
            *("--probe-requests", "60", "--search-requests", "1000", "--tolerance", "25"),
        )
    assert done.returncode == 0, done.stderr
    found = re.search(r"Found +p95 latency <= 2 s, errors <= 1 %: holds up to ([\d.]+) req", done.stdout)
    assert found is not None, done.stdout
    # Four servers of 120 ms: 33.3 a second.
    assert 20 < float(found[1]) <= 35
    assert "Knee" in done.stdout
    assert "Limit    waiting at the endpoint" in done.stdout
    assert re.search(r"Settings --concurrency \d+ --rpm \d+", done.stdout)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--concurrency", "2", "--rate", "3"), "two kinds of load"),
        (("--concurrency", "two"), "write one number above 0"),
        (("--concurrency", "1.5"), "users are whole numbers"),
        (("--rate", "0"), "write one number above 0"),
        (("--rate", "2", "--arrivals", "weird"), "gamma:SHAPE"),
        (("--most-in-flight", "3"), "a cap for --rate"),
        (("--requests-per-stage", "5", "--requests-in-all", "9"), "two different things"),
        (("--warmup", "soon"), "write a number of requests"),
        (("--image", "large"), "WIDTHxHEIGHT"),
        (("--cache", "hot"), "none of plain, bust, same"),
        (("--objective", "fast"), "write it like"),
        (("--objective", "p95 <= 1s", "--rate", "3"), "a search finds its own loads"),
        (("--search", "speed"), "none of rate, users"),
        (("--good", "p95 <= 2s"), "one reply must keep"),
        (("--score", "--image", "10x10"), "needs rows with a right answer"),
        (("--beside-endpoint", "anthropic"), "--beside-base-url or --beside-model"),
        (("--beside-base-url", "ftp://x"), "--beside-base-url: must be an http"),
        (("--max-cost", "1", "--image", "10x10"), "needs prices"),
        (("--image", "10x10", "--format", "pdf"), "none of text, html, json, csv"),
        (("--image", "10x10", "--out", "page.pdf"), "its ending names no form"),
        (("--image", "10x10", "--out", "nowhere/page.html"), "there is no folder nowhere"),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_called(
    store: Path, program: Program, flags: tuple[str, ...], words: str
) -> None:
    code, printed = program(
        *("bench", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--store", str(store)), *flags
    )
    assert code == 2
    lines = [line for line in printed.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    assert words in lines[0]
    assert "Traceback" not in printed


def test_a_closed_port_is_one_line(store: Path) -> None:
    done = mmbu("bench", "--model", "m", "--base-url", "http://127.0.0.1:9/v1", "--store", str(store), *SMALL)
    assert done.returncode == 5
    assert "http://127.0.0.1:9/v1 cannot be reached" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [("show", "b"), ("compare", "a", "b"), ("list",)])
def test_a_store_without_benches(store: Path, program: Program, command: tuple[str, ...]) -> None:
    code, printed = program("bench", *command, "--store", str(store))
    assert code == 7
    assert "there is no store" in printed
