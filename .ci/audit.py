"""Fails where a locked dependency has a known vulnerability. Where nobody can be asked it says so.

python .ci/audit.py requirements.lock [--ignore ID ...]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE_S = 20.0
"""For the whole audit; where the service answers it takes a few seconds."""


def found(report: dict[str, Any]) -> tuple[list[str], int]:
    """A line for each finding, and how many packages were asked about with success."""
    findings, asked = [], 0
    for package in report["dependencies"]:
        if "skip_reason" in package:
            continue
        asked += 1
        for finding in package["vulns"]:
            mended = ", ".join(finding["fix_versions"]) or "none yet"
            findings.append(f"{package['name']} {package['version']}: {finding['id']}, mended in {mended}")
    return findings, asked


def main(arguments: Sequence[str]) -> int:
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("lock", type=Path)
    flags.add_argument("--ignore", action="append", default=[], metavar="ID", help="a finding that is known")
    options = flags.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "audit.json"
        command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--timeout", "5"]
        command += ["--requirement", str(options.lock), "--format", "json", "--output", str(out)]
        command += ["--progress-spinner", "off", *(f"--ignore-vuln={one}" for one in options.ignore)]
        try:
            subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
            findings, asked = found(json.loads(out.read_bytes()))
        except (subprocess.TimeoutExpired, OSError, ValueError):
            findings, asked = [], 0
    for line in findings:
        sys.stdout.write(line + "\n")
    if not asked:
        sys.stdout.write(
            "audit: no service that knows of vulnerabilities could be asked; gone on without it\n"
        )
    else:
        sys.stdout.write(f"audit: {asked} packages, {len(findings)} findings\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
