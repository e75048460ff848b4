"""Benchmarks that installed packages offer, for what a TOML file cannot say.

A package names them under its entry points, and each value is a callable without arguments that returns a
`Benchmark`:

    [project.entry-points."mmbu_async.benchmarks"]
    cells = "my_package.cells:benchmark"

What is wrong with one package's benchmark is one sentence, and no other benchmark suffers from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint, entry_points

from mmbu_async.errors import ConfigError
from mmbu_async.model import Benchmark, DataSpec

ENTRY_POINTS = "mmbu_async.benchmarks"

MEMBERS = (
    *Benchmark.__annotations__,
    *(name for name, value in vars(Benchmark).items() if callable(value) and not name.startswith("_")),
)
"""What a benchmark must have."""


def offered() -> tuple[EntryPoint, ...]:
    """All entry points, by name; nothing is imported yet."""
    return tuple(sorted(entry_points(group=ENTRY_POINTS), key=lambda point: (point.name, _package(point))))


def load(name: str, points: Collection[EntryPoint]) -> Benchmark | None:
    """The benchmark that is offered under the name; None where none is. Raises ConfigError where it is
    broken, or where two packages offer one."""
    named = [point for point in points if point.name == name]
    if len(named) > 1:
        raise ConfigError(
            f"plug-in '{name}': is offered by {' and by '.join(map(_package, named))}; uninstall all but one."
        )
    return _made(named[0]) if named else None


def usable(own: Collection[str]) -> Iterator[Benchmark | ConfigError]:
    """Each plug-in's benchmark, or what is wrong with it. `own`: names that are taken."""
    points = offered()
    for name in dict.fromkeys(point.name for point in points):
        if name in own:
            yield taken(next(point for point in points if point.name == name))
            continue
        try:
            found = load(name, points)
        except ConfigError as error:
            yield error
        else:
            if found is not None:
                yield found


def taken(point: EntryPoint) -> ConfigError:
    return ConfigError(
        f"{_words(point)} cannot be reached, since mmbu-async has a benchmark of that name; its package must "
        "choose another."
    )


def _made(point: EntryPoint) -> Benchmark:
    """Foreign code runs here: whatever it raises becomes a sentence."""
    try:
        made = point.load()()
    except Exception as error:
        said = f"{type(error).__name__}: {error}".rstrip(": .")
        raise ConfigError(
            f"{_words(point)} cannot be loaded ({said}); update that package, or uninstall it."
        ) from error
    missing = [name for name in MEMBERS if not hasattr(made, name)]
    if missing or not isinstance(made.data, DataSpec):
        what = ", ".join(missing) if missing else "data as a DataSpec"
        raise ConfigError(
            f"{_words(point)} returned {type(made).__name__}, which is no Benchmark for want of {what}; its "
            f"value ({point.value}) must be a callable that returns one."
        )
    if made.name != point.name:
        raise ConfigError(
            f"{_words(point)} calls itself '{made.name}', under which its runs would be kept; its package "
            "must give it one name."
        )
    found: Benchmark = made
    return found


def _words(point: EntryPoint) -> str:
    return f"plug-in '{point.name}' of {_package(point)}"


def _package(point: EntryPoint) -> str:
    return f"package {point.dist.name} {point.dist.version}" if point.dist else "an installed package"
