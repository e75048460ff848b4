"""`mmbu serve` as its user starts and stops it."""

from __future__ import annotations

import json
import signal
import socket
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

import pytest

from tests.acceptance.program import MINI, Simulated, mmbu, simulator, start, wait_until

TOKEN = "canary-token-0123456789abcdef"
GUARDED = {"MMBU_SERVICE_TOKEN": TOKEN}


def settings(folder: Path, served: Simulated) -> Path:
    file = folder / "service.toml"
    endpoint = f'[[endpoint]]\nname = "here"\nbase_url = "{served.url}/v1"\n'
    file.write_text(f'store = "{folder / "store.sqlite"}"\n{endpoint}', encoding="utf-8")
    return file


class Served:
    """The program at work, and its API. Leaving it ends what a test that failed has left."""

    def __init__(self, file: Path) -> None:
        flags = ["--config", str(file), "--data", f"mini={MINI}", "--port", "0"]
        self.process = start("serve", *flags, environment=GUARDED)
        line = self.process.stdout.readline()
        self.said = line
        self.url = next((word for word in line.split() if word.startswith("http://")), "")
        assert self.url, line + self.process.stderr.read()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def ask(self, path: str, body: Any = None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}api/v1/{path}", content, headers)  # noqa: S310
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    def ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}readyz", timeout=30) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except urllib.error.HTTPError as error:
            assert error.code == 503
            return False

    def done(self, run: str) -> int:
        progress = self.ask(f"runs/{run}")["progress"]
        return 0 if progress is None else int(progress["done"])

    def state(self, run: str) -> str:
        return str(self.ask(f"runs/{run}")["job"]["state"])

    def stop(self) -> str:
        """What it wrote on standard error; it must have ended well."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, err
        return str(err)


def test_a_service_that_is_stopped_and_started_goes_on_by_itself(tmp_path: Path) -> None:
    with simulator(tmp_path / "log.jsonl", "--latency", "0.1") as served:
        file = settings(tmp_path, served)
        with Served(file) as first:
            assert wait_until(first.ready, first.process)
            here = {"endpoint": "here", "preflight": False, "concurrency": 2}
            judge = {"model": "j", "endpoint": "here"}
            first.ask(
                "runs", {"settings": {"name": "r", "model": "m", "data": "mini", "judge": judge, **here}}
            )
            assert wait_until(lambda: first.done("r") > 3, first.process)
            said = first.stop() + first.said
            assert "go on at the next start" in said
            assert TOKEN not in said
            before = len([one for one in served.requests() if one["role"] == "model"])
            assert 3 < before < 33
        with Served(file) as second:
            assert wait_until(second.ready, second.process)
            assert wait_until(lambda: second.state("r") == "done", second.process)
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"{second.url}api/v1/runs", timeout=30)  # noqa: S310
            second.stop()
        asked = [one for one in served.requests() if one["role"] == "model" and one["status"] == 200]
        assert len(asked) == 33


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        (["--host", "192.0.2.1"], {}, "set a token in the environment variable MMBU_SERVICE_TOKEN"),
        ([], {"MMBU_SERVICE_TOKEN": "short"}, "at least 16 printable"),
        (["--port", "{taken}"], {}, "cannot be had (Address already in use)"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    tmp_path: Path, flags: list[str], environment: dict[str, str], said: str
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        given = [flag.format(taken=taken.getsockname()[1]) for flag in flags]
        found = mmbu("serve", *given, cwd=tmp_path, environment=environment)
    assert found.returncode == 2, found.stderr
    assert said in " ".join(found.stderr.split())
    assert "Traceback" not in found.stderr
    assert "short" not in found.stderr
