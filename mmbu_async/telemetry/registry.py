"""Counters, gauges and histograms, and the text in which Prometheus reads them.

Our own since they are bumped on the event loop for each request: an addition to an attribute, without the
lock and the look-up by label that a general library needs, and without another dependency. Whoever reads
them, in whatever thread, sees each number whole.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""Of the text."""

Labels = tuple[str, ...]
Line = tuple[str, dict[str, str], float]
"""What follows the family's name, the labels, and the value."""


class Counter:
    """A number that only grows."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: float = 0

    def add(self, amount: float = 1) -> None:
        self.value += amount

    def lines(self) -> Iterator[Line]:
        yield "", {}, self.value


class Histogram:
    """How many values fell below each bound."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[Line]:
        counts = list(accumulate(self._counts))
        for bound, count in zip((*self._bounds, float("inf")), counts, strict=True):
            yield "_bucket", {"le": number(bound)}, count
        yield "_sum", {}, self._sum
        yield "_count", {}, counts[-1]


Child = TypeVar("Child", Counter, Histogram)


class Family(Generic[Child]):
    """One name with a child for each set of label values."""

    def __init__(self, name: str, text: str, kind: str, labels: Labels, make: Callable[[], Child]) -> None:
        self.name, self.text, self.kind, self.labels = name, text, kind, labels
        self._make: Callable[[], Child] = make
        self._children: dict[Labels, Child] = {}

    def of(self, *values: str) -> Child:
        """The child of these values, in the order of the labels."""
        if len(values) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}")
        child = self._children.get(values)
        return child if child is not None else self._children.setdefault(values, self._make())

    def lines(self) -> Iterator[Line]:
        for values, child in list(self._children.items()):
            own = dict(zip(self.labels, values, strict=True))
            for suffix, further, value in child.lines():
                yield suffix, own | further, value


class Asked:
    """A gauge or counter whose values are asked for when somebody looks."""

    def __init__(
        self,
        name: str,
        text: str,
        kind: str,
        labels: Labels,
        ask: Callable[[], Iterable[tuple[Labels, float]]],
    ) -> None:
        self.name, self.text, self.kind, self.labels = name, text, kind, labels
        self._ask = ask

    def lines(self) -> Iterator[Line]:
        for values, value in self._ask():
            yield "", dict(zip(self.labels, values, strict=True)), value


class Registry:
    """All families of a process, in the order in which they were made."""

    def __init__(self) -> None:
        self._families: dict[str, Family[Counter] | Family[Histogram] | Asked] = {}

    def counter(self, name: str, text: str, labels: Labels = ()) -> Family[Counter]:
        """Its name ends in `_total`."""
        made = Family(name, text, "counter", labels, Counter)
        self._add(made)
        return made

    def histogram(
        self, name: str, text: str, bounds: Sequence[float], labels: Labels = ()
    ) -> Family[Histogram]:
        """`bounds` grow."""
        made = Family(name, text, "histogram", labels, lambda: Histogram(bounds))
        self._add(made)
        return made

    def asked(
        self,
        name: str,
        text: str,
        ask: Callable[[], Iterable[tuple[Labels, float]]],
        labels: Labels = (),
        *,
        kind: str = "gauge",
    ) -> None:
        """`ask` gives the values of the labels and the number for each line, and may be called by any
        thread."""
        self._add(Asked(name, text, kind, labels, ask))

    def text(self) -> str:
        """As Prometheus reads it."""
        return "".join(
            f"{line}\n" for family in list(self._families.values()) for line in _family_lines(family)
        )

    def _add(self, family: Family[Counter] | Family[Histogram] | Asked) -> None:
        if family.name in self._families:
            raise ValueError(f"there is a {family.name} already")
        self._families[family.name] = family


def _family_lines(family: Family[Counter] | Family[Histogram] | Asked) -> Iterator[str]:
    lines = list(family.lines())
    if not lines:
        return
    yield f"# HELP {family.name} {_escaped(family.text)}"
    yield f"# TYPE {family.name} {family.kind}"
    for suffix, labels, value in lines:
        inner = ",".join(f'{name}="{_quoted(text)}"' for name, text in labels.items())
        yield f"{family.name}{suffix}{f'{{{inner}}}' if inner else ''} {number(value)}"


def number(value: float) -> str:
    """In full, whole numbers without a point."""
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _quoted(text: str) -> str:
    """Half a surrogate pair, which a name from elsewhere can hold, would make the whole text unreadable."""
    plain = text.encode("utf-8", "replace").decode()
    return _escaped(plain).replace('"', '\\"')
