"""The tree that is drawn in the docstring of `errors` is the tree of its classes."""

from __future__ import annotations

import inspect
import re

import pytest

from mmbu_async import errors
from mmbu_async.errors import ImageError, MmbuError, RowError, RunChangedError

LINE = re.compile(
    r"^ {4}(?P<branches>[│├└─ ]*)(?P<name>\w+Error) +(?P<what>.*?)(?: {2,}exit (?P<code>\d+))?$"
)
WIDTH = 4
"""Characters of one step into the tree."""


def drawn() -> dict[str, tuple[str, int | None]]:
    """Name of each class -> name of its base, exit code where one is given."""
    path: list[str] = []
    tree: dict[str, tuple[str, int | None]] = {}
    for line in (errors.__doc__ or "").splitlines():
        if match := LINE.match(line):
            depth = len(match["branches"]) // WIDTH
            del path[depth:]
            code = match["code"]
            tree[match["name"]] = (path[-1] if path else "Exception", int(code) if code else None)
            path.append(match["name"])
    return tree


def defined() -> dict[str, type[MmbuError]]:
    return {
        name: value
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, MmbuError)
    }


def test_every_class_is_drawn_and_every_drawn_class_exists() -> None:
    assert drawn().keys() == defined().keys()
    assert list(drawn()) == list(defined()), "drawn in another order than defined"


@pytest.mark.parametrize("name", sorted(defined()))
def test_bases_and_exit_codes_are_as_drawn(name: str) -> None:
    base, code = drawn()[name]
    kind = defined()[name]
    assert [parent.__name__ for parent in kind.__bases__] == [base]
    if code is not None:
        assert kind.exit_code == code
    elif name != "MmbuError":
        assert kind.exit_code == defined()[base].exit_code, "another code than its base, and not drawn"
    assert kind.__doc__


def test_incomplete_has_a_code_of_its_own() -> None:
    codes = {kind.exit_code for kind in defined().values()}
    assert errors.EXIT_INCOMPLETE not in codes
    assert errors.EXIT_OK not in codes


def test_an_error_is_its_sentence() -> None:
    assert str(ImageError("no image.")) == "no image."
    assert str(RowError("r1", "the answer is missing; fill it in")) == (
        "row r1: the answer is missing; fill it in."
    )
    assert str(RowError("r1", "is odd", "x")) == "row r1: is odd (x)."
    assert RunChangedError("changed", ("a: 1 -> 2",)).changes == ("a: 1 -> 2",)
