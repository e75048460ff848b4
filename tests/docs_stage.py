"""Where pages are played: a simulator, a drawn split, and `mmbu` as a command without its imports.

`mmbu` on the stage is the program itself: a process that has imported it forks a child for each command,
with the command's own arguments, folder, environment and files. What it sends to another machine comes to
the simulator, the hub is the drawn split, and keys are made up. What serves until it is stopped
(`simulate`, `serve`, `view`) goes on in the background once it has said where it listens, as it would in
another terminal, and is stopped with the page.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

SERVING = ("simulate", "serve", "view")
_PATIENCE_S = 60.0
_CLIENT = r"""#!{python} -SE
import json, os, signal, socket, sys, time
stage, serving = {stage!r}, sys.argv[1:2] and sys.argv[1] in {serving!r} and "--help" not in sys.argv
door = socket.socket(socket.AF_UNIX)
door.connect(stage + "/door")
told = os.path.join(stage, "serving-%d" % os.getpid())
out = os.open(told, os.O_CREAT | os.O_RDWR) if serving else 1
message = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(door, [len(message).to_bytes(4, "big")], [0, out, out if serving else 2])
door.sendall(message)
child = int(door.recv(16))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: os.kill(child, number))
door.settimeout(0.05 if serving else None)
end = time.monotonic() + {patience}
while True:
    try:
        code = door.recv(16)
    except TimeoutError:
        if "http://" in open(told).read():
            print(open(told).read(), end="")
            sys.exit(0)
        if time.monotonic() < end:
            continue
        code = b"124"
    if serving:
        print(open(told).read(), end="")
    sys.exit(int(code or b"1"))
"""


class Stage:
    """The forking process and its `mmbu`; close it, and all that it started is gone."""

    def __init__(self, folder: Path, simulator: str, data: Path) -> None:
        self.folder, self.simulator = folder, simulator
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        self._data = data
        client = self.bin / "mmbu"
        client.write_text(
            _CLIENT.format(python=sys.executable, stage=str(folder), serving=SERVING, patience=_PATIENCE_S)
        )
        client.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.docs_stage", str(folder), simulator],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def environment(self) -> dict[str, str]:
        """What every command of a page is given. No setting of the caller's own gets in."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MMBU_", "COV_"))}
        keys = {f"{maker}_API_KEY": "sk-of-the-stage-0123456789" for maker in ("OPENAI", "ANTHROPIC")}
        own = {
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "MMBU_DATA": str(self._data),
            "HF_HUB_OFFLINE": "1",
            # Batches here are done in no time, and are looked for as often.
            "MMBU_BATCH_POLL": "0.2",
            "COLUMNS": "120",
        }
        return kept | keys | own

    def play(self, text: str, folder: Path, *, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """A script in a folder, with all that it says; servers that it left are stopped."""
        try:
            return subprocess.run(
                ["bash", "-c", text],
                cwd=folder,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=timeout_s,
                check=False,
            )
        finally:
            self._process.send_signal(signal.SIGUSR1)

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


def _serve(stage: Path, simulator: str) -> None:
    import aiohttp
    from yarl import URL

    from mmbu_async.cli.main import main

    for module in ("api", "cli.show", "cli.viewing", "report.html", "pipeline.run", "simulator.command"):
        __import__(f"mmbu_async.{module}")
    ask: Any = aiohttp.ClientSession._request
    here = URL(simulator)

    def ask_here(session: Any, method: str, url: Any, **more: Any) -> Any:
        """What goes to another machine comes to the simulator, whatever its name, and nothing gets out."""
        url = URL(url)
        if url.host not in ("127.0.0.1", "localhost"):
            url = url.with_scheme("http").with_host("127.0.0.1").with_port(here.port)
        return ask(session, method, url, **more)

    setattr(aiohttp.ClientSession, "_request", ask_here)  # noqa: B010 - a method is no variable to assign to
    children: set[int] = set()

    def stop_children(*_: object) -> None:
        while children:
            with suppress(ProcessLookupError):
                os.killpg(children.pop(), signal.SIGKILL)

    def stop(*_: object) -> None:
        stop_children()
        os._exit(0)

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, stop_children)
    signal.signal(signal.SIGTERM, stop)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(str(stage / "door"))
        door.listen(16)
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            caller, _ = door.accept()
            child = os.fork()
            if child == 0:
                door.close()
                _run(caller, main)
            children.add(child)
            caller.close()


def _run(caller: socket.socket, main: Any) -> None:
    """In the child: become the command, and tell its caller how it ended."""
    for caught in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM):
        signal.signal(caught, signal.SIG_DFL)
    os.setsid()
    head, files, _, _ = socket.recv_fds(caller, 4, 3)
    caller.sendall(str(os.getpid()).encode())
    message = b""
    while len(message) < int.from_bytes(head, "big"):
        message += caller.recv(1 << 16)
    arguments, folder, environment = json.loads(message)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False, buffering=1)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if _names_data(arguments):
        # The environment wins over a file, and the hub is what stands in for a file's silence.
        del os.environ["MMBU_DATA"]
    sys.argv = ["mmbu", *arguments]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 - shown as the interpreter would, and the child ends
        sys.excepthook(*sys.exc_info())
    finally:
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
            caller.sendall(str(code).encode())
        os._exit(code)


def _names_data(arguments: list[str]) -> bool:
    if "--config" not in arguments:
        return False
    file = Path(arguments[arguments.index("--config") + 1])
    return file.exists() and any(line.startswith("data ") for line in file.read_text("utf-8").splitlines())


def simulated(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """A simulator as a process of its own, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "mmbu_async.simulator", "--port", "0"],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, str(json.loads(process.stdout.readline())["url"])


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), sys.argv[2])
