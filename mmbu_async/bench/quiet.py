"""Keeping this process out of its own figures: no long collection of garbage, and enough file descriptors."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

from mmbu_async.errors import ConfigError

SPARE = 200
"""Descriptors for everything but connections."""


SELDOM = (20_000, 5, 2**30)
"""New objects, and collections of the young and of the less young, after which the next older ones are looked
through; the old never are. At 2,500 requests a second a pause of 2 ms every half a second."""


@contextlib.contextmanager
def no_long_collections() -> Iterator[None]:
    """What lives long is not looked through while a stage runs, which takes tens of milliseconds."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*SELDOM)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def allow_connections(count: int, *, all_needed: bool = True) -> None:
    """Raise this process's limit of open files as far as so many connections need and the system allows.

    Raises ConfigError where it does not, and all of them are needed: connections that fail for want of a
    descriptor would look like errors of the endpoint.
    """
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + SPARE
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    short = hard != resource.RLIM_INFINITY and hard < needed
    if short and all_needed:
        raise ConfigError(
            f"{count:,} requests at once need more open files than this system allows ({hard:,}): raise the "
            "limit (`ulimit -Hn`), or measure with fewer."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard if short else needed, hard))
