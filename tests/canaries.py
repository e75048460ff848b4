"""A key that must not be found anywhere: what a run leaves behind, in all its forms, looked through."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote, unquote

import pyarrow.parquet as pq
import pytest

from mmbu_async.cli.main import main

T = TypeVar("T")

MODEL_KEY = "sk-proj-canary-of-the-model-0123456789abcdef"
JUDGE_KEY = "sk-ant-canary-of-the-judge-fedcba9876543210"
KEYS = (MODEL_KEY, JUDGE_KEY)

REPORTS = (
    ("report", "r"),
    ("report", "r", "--all"),
    *(("report", "r", "--format", form) for form in ("markdown", "json", "leaderboard", "card")),
    ("status",),
    ("status", "r"),
    ("limit", "r"),
    ("show", "r", "row-0"),
    ("show", "r", "row-7"),
    ("judges", "r"),
    ("store", "check"),
)
EXPORTS = (
    *(("export", "r", "--out", f"rows{ending}") for ending in (".jsonl", ".csv", ".parquet")),
    ("export", "r", "--out", "rows.leaderboard.json"),
    ("export", "r", "--out", "rows.submission.json"),
    ("export", "r", "--long", "--every-judge", "--out", "long.parquet"),
    ("report", "r", "--out", "page.html"),
    ("store", "backup", "copy.sqlite"),
    ("store", "export", "r", "one.sqlite"),
)


@contextmanager
def beside(make: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[T]:
    """Something that needs an event loop, in a thread with one, while this thread has its own work."""
    manager = make()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield asyncio.run_coroutine_threadsafe(manager.__aenter__(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(manager.__aexit__(None, None, None), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@dataclass
class Program:
    """The command line, run in this process, with both keys in its environment."""

    folder: Path
    capture: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and all that was printed, which has no key in it."""
        self.monkeypatch.setattr(sys, "argv", ["mmbu", *arguments])
        self.capture.readouterr()
        code: int | str | None = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
        printed = "".join(self.capture.readouterr())
        assert_clean(printed, f"what `mmbu {' '.join(arguments)}` printed")
        return int(code or 0), printed

    def everything_about(self, store: Path) -> None:
        """Every report and export there is of the run, printed and written; then all files are looked
        through."""
        for command in (*REPORTS, *EXPORTS):
            words = [str(self.folder / word) if "." in word else word for word in command]
            code, printed = self(*words, "--store", str(store))
            assert code in (0, 2), printed
        for file in self.folder.rglob("*"):
            if file.is_file() and file.suffix not in (".jpg", ".png"):
                for text in texts_in(file):
                    assert_clean(text, str(file))


def texts_in(file: Path) -> Iterator[str]:
    """What a file says, also where it is packed."""
    raw = file.read_bytes()
    yield raw.decode("latin-1")
    if file.suffix == ".parquet":
        yield json.dumps(pq.read_table(file).to_pylist(), default=str)
    if file.suffix == ".html":
        for content in re.findall(rb"base64,([A-Za-z0-9+/=]+)", raw):
            yield base64.b64decode(content).decode("latin-1")
        yield unquote(raw.decode("latin-1"))
    if file.suffix == ".sqlite":
        with closing(sqlite3.connect(file)) as connection:
            yield "\n".join(connection.iterdump())


def assert_clean(text: str, where: str, keys: Sequence[str] = KEYS) -> None:
    """No key, nor half of one, nor one in another spelling."""
    for key in keys:
        packed = base64.b64encode(key.encode()).decode().rstrip("=")
        for form in (
            key[: len(key) // 2],
            key[-len(key) // 2 :],
            quote(key, safe=""),
            packed,
            key.encode().hex(),
        ):
            assert form not in text, f"a key stands in {where}"
