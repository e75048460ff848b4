"""Files that are there whole or not at all."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmbu_async.errors import ConfigError, StoreFullError


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives a file beside `path` to write to, which takes its place at the end: what breaks off leaves
    nothing half, and the earlier file as it was.

    Raises ConfigError where the place is no good, StoreFullError where the disk is full.
    """
    part = path.with_name(path.name + ".part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise StoreFullError(f"{path}: the disk is full; make room or export to another one.") from None
        reason = error.strerror or error
        raise ConfigError(f"{path}: cannot be written ({reason}); choose another place.") from None
    finally:
        part.unlink(missing_ok=True)
