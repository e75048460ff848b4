"""Ctrl-C as its user meets it: an exit code and a sentence, at whatever moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mmbu_async.cli.ends import is_abort
from tests.acceptance.program import MINI, mmbu, simulator, start


def read_until(stream: Any, words: str) -> str:
    """Lines up to the first that holds the words; all there are where none does."""
    lines = []
    for line in stream:
        lines.append(line)
        if words in line:
            break
    return "".join(lines)


def test_a_second_ctrl_c_aborts_with_a_sentence(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite")
    run = ("run", "--data", str(MINI), "--model", "m", "--store", store, "--no-preflight")
    with simulator(tmp_path / "log", "--fault", "timeout=requests:1-3") as endpoint:
        process = start(*run, *endpoint.flags())
        # Requests are numbered as they come: when a later one is answered, three hang.
        while not endpoint.requests():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        told = read_until(process.stderr, "once more to abort")
        process.send_signal(signal.SIGINT)
        told += process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "Traceback" not in told
    assert "aborted" in told


@pytest.mark.parametrize("module", ["typer", "pydantic"])
def test_ctrl_c_while_the_program_loads_is_no_traceback(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    done = mmbu("--version", environment={"PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (130, "")


def test_a_loop_that_a_ctrl_c_broke_into_is_no_bug_of_ours() -> None:
    def fail(cause: type[BaseException]) -> RuntimeError:
        try:
            try:
                raise cause
            finally:
                raise RuntimeError("Event loop stopped before Future completed.")
        except RuntimeError as error:
            return error

    assert is_abort(fail(KeyboardInterrupt))
    assert not is_abort(fail(ValueError))
    assert not is_abort(RuntimeError())


@pytest.mark.parametrize(("words", "told"), [("Event loop is closed", False), ("something else", True)])
def test_a_ctrl_c_while_a_loop_closes_leaves_no_traceback_of_its_thread(words: str, told: bool) -> None:
    """Seen when the second Ctrl-C came at the very end of a drain: the thread that shuts the executor down
    finds its loop closed."""
    thread = f"raise RuntimeError({words!r})"
    program = (
        "import threading\nfrom mmbu_async.cli.ends import let_loops_end_in_silence\n"
        "let_loops_end_in_silence()\n"
        f"threading.Thread(target=exec, args=({thread!r},)).start()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ("Traceback" in done.stderr) == told
