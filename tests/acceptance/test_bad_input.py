"""Bad input: one sentence that names file, row and column and says what to do; no traceback; an exit code."""

from __future__ import annotations

import json
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.program import KEYS, MINI, Simulated, mmbu, simulator

Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Simulated]:
    folder = tmp_path_factory.mktemp("server")
    with simulator(folder / "log.jsonl", "--blind", "--model", "m", "--model", "claude-sonnet-5") as running:
        yield running


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A copy of the mini split that a test may spoil."""
    folder = tmp_path / "split"
    shutil.copytree(MINI, folder)
    (folder / "metadata.tsv").unlink()
    return folder


def run(server: Simulated, data: Path, *flags: str, **options: Any) -> subprocess.CompletedProcess[str]:
    store = data.parent / "store.sqlite"
    return mmbu(
        *("run", "mmbu-public", "--model", "m", "--name", "r", "--data", str(data), "--store", str(store)),
        *server.flags(),
        *flags,
        **options,
    )


def sentence(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The one sentence on standard error."""
    assert done.returncode == code, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr + done.stdout
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def spoil(data: Path, change: Callable[[Rows], None]) -> None:
    file = data / "metadata.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    change(rows)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_missing_key(server: Simulated, data: Path) -> None:
    said = sentence(
        mmbu(
            *("run", "mmbu-public", "--model", "m", "--data", str(data)),
            *("--store", str(data.parent / "s.sqlite")),
            environment={"OPENAI_API_KEY": ""},
        ),
        2,
    )
    assert "OPENAI_API_KEY" in said and "m at api.openai.com" in said


def test_unknown_model(server: Simulated, data: Path) -> None:
    before = len(server.requests())
    said = sentence(run(server, data, "--model", "gpt-99"), 4)
    assert "gpt-99" in said and "--model" in said
    assert len(server.requests()) - before == 1, "one call is enough to learn that a model does not exist"


def test_folder_without_metadata(server: Simulated, data: Path) -> None:
    (data / "metadata.jsonl").unlink()
    said = sentence(run(server, data), 2)
    assert str(data) in said and "metadata.jsonl" in said


def test_folder_that_does_not_exist(server: Simulated, data: Path) -> None:
    said = sentence(run(server, data.parent / "nowhere"), 2)
    assert "nowhere" in said and "--data" in said


def test_malformed_jsonl_line(server: Simulated, data: Path) -> None:
    file = data / "metadata.jsonl"
    lines = file.read_text().splitlines()
    lines[6] = lines[6][:-9]
    file.write_text("\n".join(lines))
    said = sentence(run(server, data), 2)
    assert "metadata.jsonl, line 7" in said


def test_missing_column(server: Simulated, data: Path) -> None:
    def drop(rows: Rows) -> None:
        for row in rows:
            del row["answer"]

    spoil(data, drop)
    said = sentence(run(server, data), 2)
    assert "metadata.jsonl" in said and "'answer'" in said and "mini-count-0" in said


def test_missing_image(server: Simulated, data: Path) -> None:
    (data / "images" / "retina.jpg").unlink()
    said = sentence(run(server, data), 2)
    assert "retina.jpg" in said and "mini-class-retina" in said and "metadata.jsonl" in said


def test_image_outside_the_folder(server: Simulated, data: Path) -> None:
    spoil(data, lambda rows: rows[3].update(file_name="../../etc/passwd"))
    said = sentence(run(server, data), 2)
    assert "mini-count-1" in said and "file_name" in said


def test_duplicate_id(server: Simulated, data: Path) -> None:
    spoil(data, lambda rows: rows[5].update(unique_id="mini-count-0"))
    said = sentence(run(server, data), 2)
    assert "mini-count-0" in said and "twice" in said.replace("more than once", "twice")


def test_unreadable_image_fails_its_row_alone(server: Simulated, data: Path) -> None:
    image = data / "images" / "retina.jpg"
    image.write_bytes(image.read_bytes()[:500])
    done = run(server, data)
    assert done.returncode == 3, done.stderr
    assert "INCOMPLETE" in done.stdout.splitlines()[0].upper()
    assert "retina.jpg" in done.stderr and "mini-class-retina" in done.stderr
    shown = mmbu("show", "r", "mini-class-retina", "--store", str(data.parent / "store.sqlite"))
    assert "retina.jpg" in shown.stdout and "FAILED" in shown.stdout


def test_dry_run_lists_unreadable_images(server: Simulated, data: Path) -> None:
    image = data / "images" / "retina.jpg"
    image.write_bytes(image.read_bytes()[:-2000])
    before = len(server.requests())
    done = run(server, data, "--dry-run")
    assert "retina.jpg" in done.stdout and "mini-class-retina" in done.stdout
    assert done.returncode == 2
    assert len(server.requests()) == before


def test_unknown_task(server: Simulated, data: Path) -> None:
    spoil(data, lambda rows: rows[0].update(task="segmentation | nuclei"))
    said = sentence(run(server, data), 2)
    assert "'task'" in said and "mini-count-0" in said and "segmentation" in said


def test_options_that_cannot_be_read(server: Simulated, data: Path) -> None:
    spoil(data, lambda rows: rows[0].update(options="['A) 1', 'B) "))
    said = sentence(run(server, data), 2)
    assert "'options'" in said and "mini-count-0" in said


def test_truth_without_a_box(server: Simulated, data: Path) -> None:
    spoil(data, lambda rows: rows[1].update(answer="in the middle"))
    said = sentence(run(server, data), 2)
    assert "'answer'" in said and "mini-detect-0" in said


def test_store_of_a_newer_version(server: Simulated, data: Path) -> None:
    assert run(server, data).returncode == 0
    store = data.parent / "store.sqlite"
    with sqlite3.connect(store) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version = {version + 1}")
        connection.execute("INSERT INTO migration (name, applied_at) VALUES ('m9999_from_the_future', 0)")
    said = sentence(run(server, data), 7)
    assert str(store) in said and "newer" in said


def test_file_that_is_no_store(server: Simulated, data: Path) -> None:
    (data.parent / "store.sqlite").write_text("this is no database " * 100)
    said = sentence(run(server, data), 7)
    assert "store.sqlite" in said


def test_run_that_another_process_holds(server: Simulated, data: Path) -> None:
    holder = (
        "import sys, time; from pathlib import Path; from mmbu_async.store import LeaseOwner, Store\n"
        "store = Store.open(Path(sys.argv[1]), create=False)\n"
        "store.acquire_lease(store.run('r').id, LeaseOwner.current(), time.time())\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    assert run(server, data).returncode == 0
    command = [sys.executable, "-c", holder, str(data.parent / "store.sqlite")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        said = sentence(run(server, data), 7)
        assert str(process.pid) in said and "'r'" in said
        process.kill()
    assert run(server, data).returncode == 0, "a dead holder's lease is taken over at once"


def test_full_disk(server: Simulated, data: Path) -> None:
    """No byte may be added to a file beyond 400 KB: the store is full in the middle of the run."""
    store = data.parent / "store.sqlite"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    done = subprocess.run(
        [
            *(sys.executable, "-m", "mmbu_async", "run", "mmbu-public", "--model", "m", "--name", "r"),
            *("--data", str(data), "--store", str(store), *server.flags()),
        ],
        preexec_fn=limit,
        env={"PATH": "/usr/bin", **KEYS},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    said = sentence(done, 7)
    assert "store.sqlite" in said and ("full" in said or "disk" in said)
    assert run(server, data).returncode == 0, "with room again the run goes on"


def test_resume_with_changed_settings(server: Simulated, data: Path) -> None:
    store = str(data.parent / "store.sqlite")
    assert run(server, data, "--limit", "3").returncode == 0
    said = sentence(mmbu("resume", "r", "--store", store, "--temperature", "0.7"), 2)
    assert "temperature: none -> 0.7" in said and "--new-run" in said
    spoil(data, lambda rows: rows[0].update(answer="16"))
    said = sentence(mmbu("resume", "r", "--store", store), 2)
    assert "dataset" in said and "mini-count-0" in said


def test_resume_of_a_run_that_does_not_exist(server: Simulated, data: Path) -> None:
    assert run(server, data, "--limit", "3").returncode == 0
    said = sentence(mmbu("resume", "rr", "--store", str(data.parent / "store.sqlite")), 2)
    assert "'rr'" in said and "'r'" in said


def test_no_store_here(tmp_path: Path) -> None:
    said = sentence(mmbu("status", cwd=tmp_path), 2)
    assert "mmbu.sqlite" in said and "--store" in said
    assert list(tmp_path.iterdir()) == [], "looking for a store makes none"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--concurrency", "0"], "concurrency"),
        (["--concurrency", "many"], "--concurrency"),
        (["--modell", "x"], "--modell"),
        (["--param", "x"], "--param NAME=VALUE"),
        (["--base-url", "localhost:8000"], "base_url"),
        (["--where", "metadata_modalty=CT"], "metadata_modality"),
        (["--task", "no such task"], "--task"),
        (["--max-cost", "1"], "--input-price"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--endpoint", "telegraph"], "endpoint"),
    ],
)
def test_flags(server: Simulated, data: Path, flags: list[str], words: str) -> None:
    assert words in sentence(run(server, data, *flags), 2)


def test_benchmark_that_does_not_exist() -> None:
    said = sentence(mmbu("run", "mmbu-pubic", "--model", "m"), 2)
    assert "mmbu-public" in said
