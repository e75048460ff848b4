"""The main job on real images, as its user does it: dry run, run, report, show, export, rescore, rejudge."""

from __future__ import annotations

import csv
import hashlib
import json
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.acceptance.program import MINI, Simulated, mmbu, simulator, start, wait_until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Simulated]:
    with simulator(tmp_path / "requests.jsonl", "--latency", "0.01") as running:
        yield running


def arguments(server: Simulated, store: Path, *flags: str, endpoint: str = "openai") -> list[str]:
    return [
        *("--model", "m", "--name", "r", "--data", str(MINI), "--store", str(store)),
        *server.flags(endpoint),
        *flags,
    ]


def calls(server: Simulated, role: str) -> int:
    return sum(request["role"] == role for request in server.requests())


@pytest.mark.parametrize("streaming", [(), ("--stream", "--judge-stream")])
@pytest.mark.parametrize("endpoint", ["openai", "anthropic"])
def test_from_dry_run_to_report(
    server: Simulated, tmp_path: Path, endpoint: str, streaming: tuple[str, ...]
) -> None:
    store = tmp_path / "s.sqlite"
    flags = arguments(server, store, *streaming, endpoint=endpoint)

    dry = mmbu("run", "mmbu-public", *flags, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "33 of 33 rows" in dry.stdout
    for route in ("object detection", "from segmentation", "from detection", "classification or counting"):
        assert f"Prompt of a row to {route}" in dry.stdout
    assert "conservative biomedical answer-equivalence judge" in dry.stdout
    assert server.requests() == [], "a dry run makes no call"

    done = mmbu("run", "mmbu-public", *flags)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("COMPLETE: 33 of 33 rows scored.")
    assert calls(server, "model") == 33
    assert all(request["stream"] == bool(streaming) for request in server.requests())

    report = json.loads(mmbu("report", "r", "--store", str(store), "--format", "json").stdout)
    families = {group["name"]: group for group in report["families"]}
    assert sum(group["n"] for group in families.values()) == 33
    # The baseline sees pixels only; that it finds most nuclei shows that boxes go the whole way unharmed.
    assert families["object detection"]["right"] >= 7
    assert report["rows"]["scaled"] == 0

    again = mmbu("run", "mmbu-public", *flags)
    assert again.returncode == 0
    assert calls(server, "model") == 33, "nothing is bought twice"


def test_what_is_sent(server: Simulated, tmp_path: Path) -> None:
    """Accepted images arrive byte for byte, others as PNG; the model never sees options or answer."""
    done = mmbu("run", "mmbu-public", *arguments(server, tmp_path / "s.sqlite"))
    assert done.returncode == 0, done.stderr
    sent = {picture["sha256"] for request in server.requests() for picture in request["pictures"]}
    for image in (MINI / "images").iterdir():
        digest = hashlib.sha256(image.read_bytes()).hexdigest()
        assert (digest in sent) == (image.suffix != ".tif"), image
    assert {p["media_type"] for r in server.requests() for p in r["pictures"]} == {"image/png", "image/jpeg"}


def test_show_export_rescore(server: Simulated, tmp_path: Path) -> None:
    store = str(tmp_path / "s.sqlite")
    assert mmbu("run", "mmbu-public", *arguments(server, Path(store))).returncode == 0
    bought = len(server.requests())

    status = mmbu("status", "--store", store).stdout
    assert "r " in status and "33" in status
    shown = mmbu("show", "r", "mini-seg-1", "--store", store).stdout
    for text in ("Which", "cell nucleus", "[RESULT]", "System message", "Truth"):
        assert text in shown
    unknown = mmbu("show", "r", "no-such-row", "--store", store)
    assert unknown.returncode == 2 and "no-such-row" in unknown.stderr

    rows: dict[str, list[dict[str, Any]]] = {}
    for form in ("jsonl", "csv", "parquet"):
        out = tmp_path / f"rows.{form}"
        assert mmbu("export", "r", "--store", store, "--out", str(out)).returncode == 0
    rows["jsonl"] = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    with (tmp_path / "rows.csv").open(newline="") as file:
        rows["csv"] = list(csv.DictReader(file))
    rows["parquet"] = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    for form, found in rows.items():
        assert [row["row_id"] for row in found] == [row["row_id"] for row in rows["jsonl"]], form
        assert [row["reply"] for row in found] == [row["reply"] for row in rows["jsonl"]], form

    rescored = mmbu("rescore", "r", "--store", store)
    assert rescored.returncode == 0 and "scored 33 rows anew; 0 changed" in rescored.stdout
    for form, first in (("markdown", "**COMPLETE"), ("text", "COMPLETE"), ("json", "{")):
        said = mmbu("report", "r", "--store", store, "--format", form)
        assert said.stdout.startswith(first)
    assert len(server.requests()) == bought, "none of this buys anything"


def test_rejudge_buys_verdicts_only_and_keeps_the_earlier_ones(server: Simulated, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    assert mmbu("run", "mmbu-public", *arguments(server, store)).returncode == 0
    asked = calls(server, "judge")
    done = mmbu("rejudge", "r", "--store", str(store), "--judge-model", "second-judge")
    assert done.returncode == 0, done.stderr
    assert calls(server, "model") == 33
    assert calls(server, "judge") == 2 * asked
    with sqlite3.connect(store) as connection:
        kept = connection.execute(
            "SELECT judge.name, count(*) FROM verdict JOIN judge ON judge.id = judge_id GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert kept == [("claude-sonnet-5", 24), ("second-judge", 24)]
    assert "second-judge" in mmbu("report", "r", "--store", str(store)).stdout
    # The run now belongs to the second judge: a resume finds nothing to do and nothing to complain of.
    assert mmbu("resume", "r", "--store", str(store)).returncode == 0
    assert calls(server, "judge") == 2 * asked


def test_settings_from_a_file_that_was_written_out(server: Simulated, tmp_path: Path) -> None:
    file = tmp_path / "night.toml"
    flags = arguments(server, tmp_path / "s.sqlite", "--param", "top_k=5", "--limit", "4", "--rpm", "6000")
    assert mmbu("run", "mmbu-public", *flags, "--write-config", str(file)).returncode == 0
    assert server.requests() == []
    done = mmbu("run", "--config", str(file), "--limit", "3")
    assert done.returncode == 0, done.stderr
    assert calls(server, "model") == 3, "flags win over the file"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_one_signal_drains(tmp_path: Path, name: str) -> None:
    store = tmp_path / "s.sqlite"
    with simulator(tmp_path / "log.jsonl", "--latency", "0.3") as server:
        process = start("run", "mmbu-public", *arguments(server, store, "--concurrency", "4"))
        assert wait_until(lambda: len(server.requests()) >= 6, process)
        process.send_signal(getattr(signal, name))
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert "mmbu resume r" in err and out.startswith("INCOMPLETE")
        assert not any(request["aborted"] for request in server.requests()), "calls under way were finished"
        seen = calls(server, "model")
        with sqlite3.connect(store) as connection:
            (kept,) = connection.execute("SELECT count(*) FROM call WHERE judge_id IS NULL").fetchone()
        assert kept == seen, "and stored"
        assert mmbu("resume", "r", "--store", str(store)).returncode == 0
        assert calls(server, "model") == 33


def test_money_cap(server: Simulated, tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite"
    prices = [
        *("--input-price", "1000", "--output-price", "1000", "--max-tokens", "100"),
        *("--judge-input-price", "0", "--judge-output-price", "0"),
    ]
    done = mmbu("run", "mmbu-public", *arguments(server, store, *prices, "--max-cost", "3"))
    assert done.returncode == 6, done.stderr
    assert "--max-cost" in done.stderr and done.stdout.startswith("INCOMPLETE")
    charged = sum(
        request["input_tokens"] + request["output_tokens"]
        for request in server.requests()
        if request["role"] == "model"
    )
    assert 1.5 <= charged / 1000 <= 3, "close to the cap and never beyond"
    done = mmbu("resume", "r", "--store", str(store), "--max-cost", "1000")
    assert done.returncode == 0, done.stderr


def test_key_stays_in_the_environment(tmp_path: Path) -> None:
    canary = "sk-canary-0123456789"
    with simulator(tmp_path / "log.jsonl", "--key", "another") as server:
        flags = arguments(server, tmp_path / "s.sqlite", "--log-file", str(tmp_path / "run.log"))
        done = mmbu("run", "mmbu-public", *flags, environment={"OPENAI_API_KEY": canary})
        assert done.returncode == 4 and "OPENAI_API_KEY" in done.stderr
        assert server.requests()[0]["auth"], "the key was sent"
        mmbu("export", "r", "--store", str(tmp_path / "s.sqlite"), "--out", str(tmp_path / "rows.jsonl"))
    assert canary not in done.stdout + done.stderr
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert canary.encode() not in file.read_bytes(), file


def test_progress_without_a_terminal(server: Simulated, tmp_path: Path) -> None:
    done = mmbu("run", "mmbu-public", *arguments(server, tmp_path / "s.sqlite", "--log-json"))
    last = json.loads([line for line in done.stderr.splitlines() if line.startswith("{")][-1])
    assert last["run"] == "r" and "33/33 rows" in last["message"] and "tokens" in last["message"]


def test_module_and_command_are_the_same() -> None:
    assert mmbu("--version").stdout.startswith("mmbu-async ")
