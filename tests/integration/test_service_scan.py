"""A bounded scan of the API against its own description; `python -m tests.service_scan` is the long one."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = 4
"""Of each operation."""


def test_a_scan_finds_nothing() -> None:
    # A process of its own: what is not on this machine is not asked of the hub, which is read at its start.
    command = [sys.executable, "-m", "tests.service_scan", "--examples", str(EXAMPLES), "--phases", "fuzzing"]
    found = subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        check=False,
    )
    said = found.stdout + found.stderr
    assert found.returncode == 0, said[-8000:]
    counted = re.search(r"(\d+) generated, (\d+) passed\n", said)
    assert counted is not None, said[-3000:]
    assert int(counted[1]) == int(counted[2]) > 30
