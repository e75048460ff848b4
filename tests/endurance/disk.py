"""The folder of the store, which can fill up and become read-only."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
from contextlib import suppress
from pathlib import Path

SIZE_MB = 24
_CLONE_NEWNS = 0x00020000


class Disk:
    """A small file system of its own where this process may mount one, else a plain folder.

    The mount is made in a namespace of this process, so that nothing of it is left whatever ends the process.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.own = self._mount()
        """Whether it is a file system of its own."""

    @property
    def kind(self) -> str:
        return f"tmpfs of {SIZE_MB} MB" if self.own else "plain folder"

    @property
    def can_be_read_only(self) -> bool:
        """Permissions of files bind everybody but root."""
        return self.own or os.geteuid() != 0

    def fill(self) -> None:
        """Take every byte that is left."""
        with (self.folder / "filler").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(2**16))
        with (self.folder / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0")

    def free(self) -> None:
        (self.folder / "filler").unlink(missing_ok=True)

    def set_read_only(self, read_only: bool) -> None:
        """Raises OSError where somebody still writes."""
        if self.own:
            mode = "ro" if read_only else "rw"
            done = subprocess.run(
                ["mount", "-o", f"remount,{mode}", str(self.folder)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                raise OSError(errno.EBUSY, done.stderr.strip())
            return
        for file in [self.folder, *self.folder.iterdir()]:
            executable = 0o100 if file.is_dir() else 0
            file.chmod((0o400 if read_only else 0o600) | executable)

    def close(self) -> None:
        if self.own:
            subprocess.run(["umount", "-l", str(self.folder)], capture_output=True, check=False)

    def _mount(self) -> bool:
        if os.geteuid() != 0:
            return False
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(_CLONE_NEWNS) != 0:
            return False
        commands = (
            ["mount", "--make-rprivate", "/"],
            ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "endurance", str(self.folder)],
        )
        return all(
            subprocess.run(command, capture_output=True, check=False).returncode == 0 for command in commands
        )
