#!/opt/mmbu/bin/python
"""Whether the service answers. A container that does something else than serve is well while it lives."""

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

ADDRESS = os.environ.get("MMBU_HEALTH", "http://127.0.0.1:8080/healthz")
FIRST = Path("/proc/1/cmdline")


def serves(command: bytes) -> bool:
    """Whether a command line, as /proc has it, is that of the service."""
    return b"serve" in command.split(b"\0")


if __name__ == "__main__":
    if serves(FIRST.read_bytes()) or "MMBU_HEALTH" in os.environ:
        try:
            with urllib.request.urlopen(ADDRESS, timeout=4) as answer:  # noqa: S310 - http, and to this container
                sys.exit(0 if answer.status == 200 else 1)
        except (urllib.error.URLError, TimeoutError, ConnectionError) as error:
            sys.exit(f"no answer at {ADDRESS}: {error}")
