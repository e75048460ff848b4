"""SIGKILL in a run with three judges: each has its verdict once, and only calls in flight are made again.
Then the commands on the finished run, from outside.
"""

from __future__ import annotations

import csv
import json
import random
import sqlite3
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.simulator.demo import draw_split
from tests.acceptance.program import Simulated, kill, mmbu, simulator, start, wait_until

CONCURRENCY = 4
KILLS = 4
ROWS = 48
JUDGES = ("claude-sonnet-5", "b", "c")


@pytest.fixture(scope="module")
def split(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw_split(tmp_path_factory.mktemp("split"), rows=ROWS, seed=3)


def panel(folder: Path, b: Simulated, c: Simulated) -> Path:
    """One judge in each wire format, each at an address of its own."""
    file = folder / "panel.toml"
    file.write_text(
        f"""
verdict = "majority"

[[panel]]
name = "b"
model = "judge-b"
endpoint = "openai"
base_url = "{b.url}/v1"
concurrency = {CONCURRENCY}

[[panel]]
name = "c"
model = "judge-c"
endpoint = "anthropic"
base_url = "{c.url}"
concurrency = {CONCURRENCY}
"""
    )
    return file


def flags(store: Path, split: Path, server: Simulated, file: Path) -> list[str]:
    return [
        *("run", "mmbu-public", "--name", "r", "--model", "m", "--data", str(split), "--store", str(store)),
        *("--concurrency", str(CONCURRENCY), "--judge-concurrency", str(CONCURRENCY)),
        *("--panel", str(file), *server.flags()),
    ]


def test_a_panel_killed_many_times(tmp_path: Path, split: Path) -> None:
    draw = random.Random("kill a panel")
    store = tmp_path / "s.sqlite"
    slow = ("--latency", "uniform:0.02,0.15")
    differ = ("--fault", "other_verdict@judge=0.2")
    with (
        simulator(tmp_path / "a.jsonl", *slow, "--seed", "1") as a,
        simulator(tmp_path / "b.jsonl", *slow, *differ, "--seed", "2") as b,
        simulator(tmp_path / "c.jsonl", *slow, *differ, "--seed", "3") as c,
    ):
        servers = (a, b, c)
        arguments = flags(store, split, a, panel(tmp_path, b, c))
        kills = 0
        while kills < KILLS:
            process = start(*arguments)
            seen = sum(len(one.requests()) for one in servers)
            wanted = seen + draw.randint(1, 4 * ROWS // KILLS)

            def reached(wanted: int = wanted) -> bool:
                return sum(len(one.requests()) for one in servers) >= wanted

            if not wait_until(reached, process):
                process.communicate()
                break
            kill(process)
            kills += 1
            arguments = ["resume", "r", "--store", str(store)]
        assert kills >= KILLS // 2, "the run must be long enough to be killed often"
        last = mmbu("resume", "r", "--store", str(store))
        assert last.returncode == 0, last.stderr
        _each_judge_once(store, servers, kills)
        bought = [len(one.requests()) for one in servers]
        _commands(tmp_path, store)
        assert [len(one.requests()) for one in servers] == bought, "none of this buys anything"


def _each_judge_once(store: Path, servers: tuple[Simulated, ...], kills: int) -> None:
    with sqlite3.connect(store) as connection:
        counted = connection.execute(
            "SELECT judge.name, count(*), count(DISTINCT sample_id), sum(correct IS NULL) "
            "FROM verdict JOIN judge ON judge.id = judge_id GROUP BY 1"
        ).fetchall()
        (replies, rows) = connection.execute(
            "SELECT count(*), count(DISTINCT sample_id) FROM call WHERE ok = 1 AND judge_id IS NULL"
        ).fetchone()
        votes = connection.execute(
            "SELECT sample_id, name, correct FROM verdict JOIN judge ON judge.id = judge_id"
        ).fetchall()
        scores = dict(connection.execute("SELECT sample_id, correct FROM score WHERE verdict IS NOT NULL"))
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert (replies, rows) == (ROWS, ROWS)
    judged = {name: (n, distinct, missing) for name, n, distinct, missing in counted}
    assert set(judged) == {*JUDGES, "majority"}
    assert len(set(judged.values())) == 1, (
        "each judge, and the majority, has a usable verdict on the same rows"
    )
    by_row: dict[int, dict[str, int]] = defaultdict(dict)
    for row, name, correct in votes:
        by_row[row][name] = correct
    for row, said in by_row.items():
        majority = int(sum(said[name] for name in JUDGES) >= 2)
        assert said["majority"] == majority == scores[row]
    for server in servers:
        asked = Counter((one["role"], one["content"]) for one in server.requests())
        repeats = sum(asked.values()) - len(asked)
        sides = 2 if server is servers[0] else 1
        assert repeats <= kills * CONCURRENCY * sides, "only calls in flight are made again"


def _commands(tmp_path: Path, store: Path) -> None:
    report = json.loads(mmbu("report", "r", "--store", str(store), "--format", "json").stdout)
    assert report["complete"] and not report["ran"]["official"]
    assert "majority of" in report["ran"]["unofficial"][0]
    panel: dict[str, Any] = report["panel"]
    assert [judge["name"] for judge in panel["judges"]] == [*JUDGES, "majority"]
    assert panel["fleiss"]["n"] == panel["compared"] > panel["disagreeing"] > 0
    out = tmp_path / "differ.csv"
    done = mmbu("judges", "r", "--store", str(store), "--disagreements", str(out))
    assert done.returncode == 0, done.stderr
    assert "Agreement of judges" in done.stdout
    with out.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == panel["disagreeing"]
    assert all({line[name] for name in JUDGES} == {"0", "1"} for line in lines)
    # Filled in by somebody who agrees with `b`.
    with out.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=lines[0])
        writer.writeheader()
        writer.writerows({**line, "human": line["b"]} for line in lines)
    done = mmbu("judges", "r", "--store", str(store), "--labels", str(out), "--format", "json")
    against = {one["judge"]: one for one in json.loads(done.stdout)["humans"]["against"]}
    assert against["b"]["accuracy"] == 1.0
    assert against["b"]["false_positives"] == against["b"]["false_negatives"] == 0
    assert against["claude-sonnet-5"]["accuracy"] < 1.0
    out.write_text("row_id,label\nnobody,1\n")
    done = mmbu("judges", "r", "--store", str(store), "--labels", str(out))
    assert done.returncode == 2 and "line 2, column row_id" in done.stderr
