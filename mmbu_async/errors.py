"""Every named error of the package, in one tree.

    MmbuError                     anything we raise on purpose; its text is one sentence for the user
    ├── ConfigError               a flag, a file or an environment variable is wrong            exit 2
    │   └── MissingKeyError       the environment has no API key
    ├── DataError                 a dataset, a row or an image is not as it must be             exit 2
    │   ├── RowError              one row of a dataset cannot be used
    │   └── ImageError            one image cannot be read or sent: fails its row, not the run
    ├── StoreError                the SQLite store cannot be used                               exit 7
    │   ├── StoreLockedError      another process holds the run or the file
    │   ├── StoreVersionError     the store was written by a newer version
    │   ├── StoreFullError        the disk is full, or the file may not grow
    │   ├── RunNotFoundError      no run of that name                                           exit 2
    │   └── BenchNotFoundError    no bench of that name                                         exit 2
    ├── RunChangedError           resume with settings that would mix two experiments           exit 2
    ├── EndpointError             the endpoint refuses every row: key, model name, quota        exit 4
    ├── EndpointDownError         many rows in a row failed alike: the breaker opened           exit 5
    ├── ServiceError              the service cannot do that now                                exit 2
    │   ├── RunStateError         the state of a run forbids it
    │   └── ServiceStoppingError  it stops, and takes nothing new
    ├── ClusterError              scheduler or workers of a Dask cluster cannot be used         exit 8
    ├── BudgetReachedError        the money cap is reached; drained, resumable                  exit 6
    └── InterruptedRunError       Ctrl-C or SIGTERM; drained, resumable                         exit 130

A run that ends with rows failed, or with more rows unjudged than `judge_coverage` allows, is no error: it is
reported as incomplete and exits with 3.
"""

from __future__ import annotations

from typing import ClassVar

EXIT_OK = 0
EXIT_INCOMPLETE = 3


class MmbuError(Exception):
    """Anything we raise on purpose. `str()` is one clear sentence: what, where, what to do."""

    exit_code: ClassVar[int] = 1


class ConfigError(MmbuError):
    """A flag, a file or an environment variable is wrong."""

    exit_code = 2


class MissingKeyError(ConfigError):
    """The environment has no API key for an endpoint that needs one."""


class DataError(MmbuError):
    """A dataset, a row or an image is not as it must be."""

    exit_code = 2


class RowError(DataError):
    """One row of a dataset cannot be used. Kept in parts: rows with one problem are listed together."""

    def __init__(self, row: str, problem: str, value: str = "") -> None:
        super().__init__(f"row {row}: {problem}" + (f" ({value})." if value else "."))
        self.row = row
        self.problem = problem
        """What is wrong and what to do, in words that hold for every row that has it."""
        self.value = value
        """What stands there in this row."""


class ImageError(DataError):
    """One image cannot be read or sent. Fails its row, not the run."""


class StoreError(MmbuError):
    """The SQLite store cannot be used."""

    exit_code = 7


class StoreLockedError(StoreError):
    """Another process holds the run or the file."""


class StoreVersionError(StoreError):
    """The store was written by a newer version of the package."""


class StoreFullError(StoreError):
    """The disk is full, or the file may not grow."""


class RunNotFoundError(StoreError):
    """The store has no run of that name."""

    exit_code = 2


class BenchNotFoundError(StoreError):
    """The store has no bench of that name."""

    exit_code = 2


class RunChangedError(MmbuError):
    """A resume with settings that would mix two experiments. `changes` has one line a difference."""

    exit_code = 2

    def __init__(self, message: str, changes: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.changes = changes


class EndpointError(MmbuError):
    """The endpoint refuses every row: key, model name, quota."""

    exit_code = 4


class EndpointDownError(MmbuError):
    """Many rows in a row failed alike; the breaker opened."""

    exit_code = 5


class ServiceError(MmbuError):
    """The service cannot do what it was asked for."""

    exit_code = 2


class RunStateError(ServiceError):
    """The state of a run forbids it: it has ended, it is at work already."""


class ServiceStoppingError(ServiceError):
    """The service stops, or has not found its jobs yet, and takes nothing new."""


class ClusterError(MmbuError):
    """The scheduler or the workers of a Dask cluster cannot be used; what was paid for is stored."""

    exit_code = 8


class BudgetReachedError(MmbuError):
    """The money cap is reached; in-flight calls were finished and stored."""

    exit_code = 6


class InterruptedRunError(MmbuError):
    """Ctrl-C or SIGTERM; in-flight calls were finished and stored."""

    exit_code = 130
