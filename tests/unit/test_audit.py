"""What the audit of locked dependencies makes of an answer."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def test_findings_and_what_could_not_be_asked() -> None:
    file = Path(__file__).parents[2] / ".ci" / "audit.py"
    spec = importlib.util.spec_from_file_location("audit", file)
    assert spec is not None
    assert spec.loader is not None
    audit = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(audit)
    vulnerable = {"id": "PYSEC-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}
    report = {
        "dependencies": [
            {"name": "a", "version": "1", "vulns": []},
            {"name": "b", "version": "2", "vulns": [vulnerable]},
            {"name": "c", "skip_reason": "not found"},
        ],
        "fixes": [],
    }
    assert audit.found(report) == (["b 2: PYSEC-1, mended in 2.1"], 2)
