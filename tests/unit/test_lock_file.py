"""The lock file: every dependency pinned by hash, none forgotten, and nothing of where it was made."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = ROOT / "requirements.lock"

if not LOCK.exists():
    pytest.skip(
        "the lock file is part of the repository, not of an installed package", allow_module_level=True
    )

TEXT = LOCK.read_text(encoding="utf-8")
PINS = dict(re.findall(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", TEXT, flags=re.MULTILINE))


def wanted() -> dict[str, str]:
    """Name -> least version, of what the project needs to run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dask"], *extras["dicom"], *extras["telemetry"]]
    found = [re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?>=([\w.]+)", line) for line in lines]
    assert all(found), "each dependency names its least version"
    return {match[1].lower(): match[2] for match in found if match}


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)))


def test_every_dependency_is_pinned_at_a_version_that_will_do() -> None:
    assert len(wanted()) > 15
    for name, least in wanted().items():
        assert name in PINS, f"{name} is missing: make the lock file anew, as it says at its top"
        assert numbers(PINS[name]) >= numbers(least), name


def test_every_pin_has_hashes_of_one_kind() -> None:
    for part in re.split(r"\n(?=[a-z0-9])", TEXT)[1:]:
        hashes = re.findall(r"--hash=(\w+):([0-9a-f]+)", part)
        assert hashes, part[:80]
        assert all(kind == "sha256" and len(digest) == 64 for kind, digest in hashes), part[:80]
        assert part.count("==") >= 1
        assert "@ " not in part


def test_it_names_no_place() -> None:
    assert "://" not in TEXT
    assert not re.search(r"index|mirror|find-links|trusted-host|(?<!sha)file:", TEXT)
    assert not re.search(r"(?m)^-", TEXT), "no options but hashes"
