"""The image's steps where no Docker engine is at hand: built, and run as a container would be.

    python docker/exercise.py                  performs the Dockerfile's steps in a folder, then what is below
    python docker/exercise.py --venv FOLDER    takes an environment that has the package in /opt/mmbu's place

Then each command runs as user 10001 with a read-only root file system, /data and /tmp excepted: a demo, a
write that must fail, the service with its token from a file, its health check, its metrics, its end upon
SIGTERM, the same volume again, and stores of every older version. That takes Linux, root and `unshare`;
otherwise it says what it leaves out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

ROOT = Path(__file__).parent.parent
USER = 10001
TOKEN = "a-token-of-the-exercise"  # noqa: S105 - of this exercise alone
PATIENCE_S = 60.0


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def instructions(dockerfile: Path) -> Iterator[tuple[str, str]]:
    """Name and rest of each instruction, continued lines joined."""
    text = re.sub(r"(?m)^\s*#.*\n", "", dockerfile.read_text("utf-8"))
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        if line.strip():
            name, _, rest = line.strip().partition(" ")
            yield name, rest.strip()


class Box:
    """A folder that stands for the image's file system, and what is run in it."""

    def __init__(self, folder: Path, venv: Path | None) -> None:
        self.folder = folder
        self.venv = venv or folder / "opt" / "mmbu"
        self.data, self.tmp = folder / "data", folder / "tmp"
        self.isolated = _can_isolate()
        self.environment: dict[str, str] = {}
        self.entry: list[str] = []
        self.command: list[str] = []

    def inside(self, text: str) -> str:
        """The image's paths as they are here."""
        places = {"/opt/mmbu": self.venv, "/data": self.data, "/src": self.folder / "src", "/tmp": self.tmp}  # noqa: S108
        return re.sub(r"(?<![\w.])/(opt/mmbu|data|src|tmp)\b", lambda at: str(places[at[0]]), text)

    def build(self, *, steps: bool) -> None:
        """Perform the Dockerfile; without `steps` only what says how the image is run."""
        work = self.folder
        for name, rest in instructions(ROOT / "docker" / "Dockerfile"):
            if name == "WORKDIR":
                work = Path(self.inside(rest))
                work.mkdir(parents=True, exist_ok=True)
            elif name == "ENV":
                self.environment |= dict(pair.split("=", 1) for pair in shlex.split(self.inside(rest)))
            elif name in ("ENTRYPOINT", "CMD"):
                setattr(self, "entry" if name == "ENTRYPOINT" else "command", json.loads(rest))
            elif name == "COPY" and "--from" not in rest:
                *sources, target = rest.split()
                if steps or target.startswith("/opt"):
                    _copy([ROOT / source for source in sources], work / self.inside(target))
            elif name == "RUN" and steps:
                # The user is a number here, and needs no entry.
                command = re.sub(r"useradd [^&]*&& ", "", rest).replace(
                    "-o mmbu -g mmbu", f"-o {USER} -g {USER}"
                )
                say(f"RUN {command}")
                subprocess.run(["sh", "-ec", self.inside(command)], cwd=work, check=True)
        self.environment["PATH"] = f"{self.venv / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        for folder, mode in ((self.data, 0o750), (self.tmp, 0o1777)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        if self.isolated:
            os.chown(self.data, USER, USER)
        self.folder.chmod(0o755)

    def arguments(self, command: Sequence[str], more: Mapping[str, str]) -> list[str]:
        """`docker run --read-only --user 10001 …`, without Docker."""
        environment = [f"{name}={value}" for name, value in (self.environment | dict(more)).items()]
        plain = ["env", "-i", *environment, *command]
        if not self.isolated:
            return plain
        base = Path(os.path.realpath(self.venv / "bin" / "python")).parent.parent
        hidden = next((one for one in reversed(base.parents) if not one.stat().st_mode & 1), None)
        steps = ["mount --make-rprivate /", *(f"mount --bind {p} {p}" for p in (self.data, self.tmp))]
        if hidden is not None:
            # The interpreter lies in somebody's home: shown at its place, and nothing else of that home.
            kept = self.folder / "base"
            kept.mkdir(exist_ok=True)
            steps += [f"mount --bind {base} {kept}", f"mount -t tmpfs -o mode=755 tmpfs {hidden}"]
            steps += [f"mkdir -p {base}", f"mount --bind {kept} {base}", f"mount -o remount,bind,ro {base}"]
            steps += [f"mount -o remount,ro {hidden}"]
        steps += ["mount -o remount,bind,ro /", f"cd {self.data}"]
        drop = f"exec setpriv --reuid {USER} --regid {USER} --clear-groups --no-new-privs --bounding-set=-all"
        return ["unshare", "-m", "sh", "-ec", "; ".join([*steps, f'{drop} "$@"']), "sh", *plain]

    def run(self, *command: str, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.arguments([*map(self.inside, command)], more or {}),
            cwd=self.data,
            capture_output=True,
            text=True,
            check=False,
        )

    def mmbu(self, *command: str) -> str:
        """The image with other words than its own; it must end well."""
        done = self.run(*self.entry, *command)
        _expect(done.returncode == 0, f"mmbu {shlex.join(command)}: {done.stdout}{done.stderr}")
        return done.stdout


@contextmanager
def serving(box: Box, port: int) -> Iterator[str]:
    """The image's own command at a port that is free; ends by SIGTERM, and well."""
    command = [word.replace("8080", str(port)) for word in box.command]
    more = {"MMBU_SERVICE_TOKEN_FILE": str(box.tmp / "token")}
    process = subprocess.Popen(box.arguments([*box.entry, *command], more), cwd=box.data)
    address = f"http://127.0.0.1:{port}"
    try:
        healthy = ("/opt/mmbu/bin/python", "/opt/mmbu/bin/healthcheck.py")
        end = time.monotonic() + PATIENCE_S
        while box.run(*healthy, more={"MMBU_HEALTH": f"{address}/healthz"}).returncode:
            _expect(process.poll() is None and time.monotonic() < end, "the service does not become healthy")
            time.sleep(0.2)
        yield address
        process.send_signal(signal.SIGTERM)
        _expect(process.wait(PATIENCE_S) == 0, "SIGTERM does not end the service well")
    finally:
        process.kill()
        process.wait()


def asked(url: str, token: str = "") -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:  # noqa: S310 - ours
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def exercise(box: Box) -> None:
    say(box.mmbu("--version").strip())
    box.mmbu("demo", "--folder", "/data/demo", "--rows", "5")
    say("a run: all that it writes is on the volume")
    if box.isolated:
        done = box.run("python", "-c", "open('/opt/mmbu/x', 'w')")
        _expect("Read-only file system" in done.stderr, f"the root file system can be written: {done.stderr}")
        say("as user 10001, the root file system is read-only")
    token = box.tmp / "token"
    token.write_text(TOKEN + "\n")
    token.chmod(0o644)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for again in (False, True):
        with serving(box, port) as address:
            _expect(asked(f"{address}/metrics")[0] == 401, "metrics are shown without the token")
            status, text = asked(f"{address}/metrics", TOKEN)
            _expect(status == 200 and "mmbu_build_info" in text, "no metrics")
        when = " again, on the same volume" if again else ""
        say(f"the service{when}: healthy, guarded, measured, ended by SIGTERM")
    for dump in sorted((ROOT / "tests" / "migration").glob("store_v*.sql")):
        old = box.data / f"{dump.stem}.sqlite"
        with closing(sqlite3.connect(old)) as store:
            store.executescript(dump.read_text("utf-8"))
        if box.isolated:
            os.chown(old, USER, USER)
        _expect("rows" in box.mmbu("status", "--store", f"/data/{old.name}"), f"{dump.stem} does not open")
    say("stores of every older version open, and are brought up to date")


def _copy(sources: Sequence[Path], target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for source in sources:
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)


def _can_isolate() -> bool:
    return (
        sys.platform == "linux"
        and os.geteuid() == 0
        and not subprocess.run(
            ["unshare", "-m", "sh", "-ec", "mount --make-rprivate /; mount -o remount,bind,ro /"],
            capture_output=True,
            check=False,
        ).returncode
    )


def _expect(true: bool, otherwise: str) -> None:
    if not true:
        raise SystemExit(f"exercise: {otherwise}")


def main(arguments: Sequence[str]) -> None:
    flags = argparse.ArgumentParser(description="The image's steps without Docker.")
    flags.add_argument(
        "--venv", type=Path, help="an environment with the package, instead of the Dockerfile's steps"
    )
    options = flags.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        box = Box(Path(folder), options.venv and options.venv.absolute())
        if not box.isolated:
            say("not root, or no namespaces: user and read-only root file system are left out")
        box.build(steps=options.venv is None)
        exercise(box)


if __name__ == "__main__":
    main(sys.argv[1:])
