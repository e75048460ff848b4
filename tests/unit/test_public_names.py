"""The names that callers are told of are there, and what is there is told of."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mmbu_async
from mmbu_async import api

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", mmbu_async.__all__)
def test_every_exported_name_can_be_had(name: str) -> None:
    assert getattr(mmbu_async, name) is not None


def test_other_names_are_refused_in_pythons_words() -> None:
    with pytest.raises(AttributeError, match=r"module 'mmbu_async' has no attribute 'nonsense'"):
        mmbu_async.nonsense  # noqa: B018


def commands() -> set[str]:
    """Public functions of the API that are no twins and no helpers."""
    names = {name for name in api.__all__ if inspect.isfunction(getattr(api, name))}
    return {name for name in names if not name.endswith("_sync")} - {"rows"}


def test_the_readme_names_every_function_of_the_api_and_no_other() -> None:
    told = re.search(r"has a function for each command\s+under its name: (.*?)\.\n", README, re.DOTALL)
    assert told is not None
    assert set(re.findall(r"`(\w+)`", told[1])) | {"evaluate"} == commands()


@pytest.mark.parametrize("name", sorted(name for name in vars(api) if name.endswith("_sync")))
def test_a_twin_takes_what_its_brother_takes(name: str) -> None:
    if name == "run_sync":
        return
    twin, brother = getattr(api, name), getattr(api, name.removesuffix("_sync"))
    # A host has a loop of its own, and so no use for a twin.
    taken = [one for one in inspect.signature(brother).parameters.values() if one.name != "host"]
    assert list(inspect.signature(twin).parameters.values()) == taken
    assert not inspect.iscoroutinefunction(twin)
    assert inspect.iscoroutinefunction(brother)


def test_importing_the_package_is_cheap() -> None:
    """No work at import: neither the engine nor a heavy library is loaded before it is used."""
    heavy = ["aiohttp", "datasets", "numpy", "pyarrow", "PIL", "rich", "tenacity", "mmbu_async.api"]
    code = f"import sys, mmbu_async; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
