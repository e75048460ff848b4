"""Log lines for people and for machines."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mmbu_async.errors import ConfigError
from mmbu_async.pipeline.logs import RUN, JsonLines, PlainLines, configure

ROOT = logging.getLogger("mmbu_async")
log = logging.getLogger("mmbu_async.test")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    handlers, level, propagate = list(ROOT.handlers), ROOT.level, ROOT.propagate
    name = RUN.set("")
    yield
    RUN.reset(name)
    for handler in list(ROOT.handlers):
        ROOT.removeHandler(handler)
        if handler not in handlers:
            handler.close()
    for handler in handlers:
        ROOT.addHandler(handler)
    ROOT.setLevel(level)
    ROOT.propagate = propagate


def record(message: str, **extra: str) -> logging.LogRecord:
    made = logging.LogRecord("mmbu_async.test", logging.WARNING, __file__, 1, message, (), None)
    made.__dict__.update(extra)
    made.created = 0.0
    return made


def test_a_plain_line() -> None:
    line = PlainLines().format(record("no reply: busy", row="r-1", kind="timeout"))
    assert line.endswith(" warning no reply: busy [row=r-1 kind=timeout]")
    assert PlainLines().format(record("hello")).endswith(" warning hello")


def test_the_words_of_others_steer_no_terminal() -> None:
    evil = "\x1b[2J\x07\u202egnp\nline"
    said = PlainLines().format(record(f"no reply: {evil}", row=evil))
    assert said.count(r"\x1b[2J\x07\u202egnp\nline") == 2
    assert not any(letter in said for letter in "\x1b\x07\u202e\n")


def test_a_json_line() -> None:
    RUN.set("night")
    line = JsonLines().format(record('no "reply"\nat all', row="r-1", kind="timeout"))
    assert "\n" not in line
    assert json.loads(line) == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "warning",
        "logger": "mmbu_async.test",
        "message": 'no "reply"\nat all',
        "run": "night",
        "row": "r-1",
        "kind": "timeout",
    }


def test_an_exception_is_in_the_line() -> None:
    made = record("it broke")
    try:
        raise ValueError("deep")
    except ValueError:
        made.exc_info = sys.exc_info()
    assert "ValueError: deep" in json.loads(JsonLines().format(made))["exception"]
    assert PlainLines().format(made).endswith("ValueError: deep")


def test_a_file_name_that_is_no_utf8_does_not_lose_the_line(tmp_path: Path) -> None:
    name = b"image-\xff.png".decode("utf-8", "surrogateescape")
    assert "image-" in json.loads(JsonLines().format(record(f"cannot read {name}")))["message"]
    configure(file=tmp_path / "log.txt")
    log.warning("cannot read %s", name)
    assert "cannot read image-" in (tmp_path / "log.txt").read_text(encoding="utf-8")


def test_a_jsonl_file_gets_json(tmp_path: Path) -> None:
    configure(file=tmp_path / "log.jsonl")
    RUN.set("night")
    log.warning("one")
    log.debug("not this")
    lines = (tmp_path / "log.jsonl").read_text(encoding="utf-8").splitlines()
    assert [(json.loads(line)["message"], json.loads(line)["run"]) for line in lines] == [("one", "night")]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "log.txt"
    with pytest.raises(ConfigError, match=r"nowhere/log\.txt cannot be written \(No such file"):
        configure(file=missing)


def test_standard_error_unless_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    configure(console=Console(file=StringIO(), force_terminal=False))
    log.info("to stderr")
    captured = capsys.readouterr()
    assert "to stderr" in captured.err
    assert captured.out == ""


def test_a_terminal_prints_words_as_they_are() -> None:
    """No markup: brackets in an endpoint's words are words."""
    screen = StringIO()
    configure(console=Console(file=screen, force_terminal=True, width=40, color_system=None))
    log.warning("refused: [red]not a colour[/red] and [/] %s", "x" * 60)
    assert f"refused: [red]not a colour[/red] and [/] {'x' * 60}" in screen.getvalue()


def test_configuring_again_replaces_the_handler(tmp_path: Path) -> None:
    first = configure(file=tmp_path / "one.txt")
    second = configure(file=tmp_path / "two.txt")
    assert ROOT.handlers == [second]
    log.info("hello")
    assert first is not second
    assert (tmp_path / "one.txt").read_text() == ""
    assert "hello" in (tmp_path / "two.txt").read_text()
    assert not ROOT.propagate
