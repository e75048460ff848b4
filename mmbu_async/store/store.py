"""The store as everything but a running engine uses it: synchronous, over one connection.

One file holds many runs. Facts that were paid for (replies, verdicts) are only ever added; nothing here
deletes a result. Not for use by two threads at once, but it may be handed from one to another.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from mmbu_async.errors import DataError
from mmbu_async.model import Answer, Json, Sample, Score
from mmbu_async.store import (
    batch_jobs,
    changes,
    codec,
    control,
    datasets,
    learning,
    lease,
    longform,
    names,
    outcomes,
    results,
    rows,
    runs,
    scores,
    verdicts,
    votes,
)
from mmbu_async.store.batch_jobs import BatchRecord
from mmbu_async.store.changes import Rescore, ScoreChange
from mmbu_async.store.connect import BUSY_TIMEOUT_S, Synchronous, connect, named_errors
from mmbu_async.store.control import Control, Limits
from mmbu_async.store.learning import JudgedPrompt, UsageRecord
from mmbu_async.store.lease import Lease, LeaseOwner
from mmbu_async.store.longform import LongRow
from mmbu_async.store.outcomes import Outcome
from mmbu_async.store.records import (
    DatasetRecord,
    JudgeRecord,
    RunCounts,
    RunRecord,
    RunTotals,
    SessionRecord,
)
from mmbu_async.store.results import FlipRecord, JointCounts, Result
from mmbu_async.store.rows import RowDetail, RowRecord
from mmbu_async.store.scores import Replaced, ScoreInput
from mmbu_async.store.sql import query
from mmbu_async.store.transactions import transaction
from mmbu_async.store.votes import VotedRow, Votes


class Store:
    """One SQLite file with many runs. Every method raises StoreError or one of its kinds, never SQLite's."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self.path = path

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        create: bool = True,
        read_only: bool = False,
        synchronous: Synchronous = "full",
        busy_timeout_s: float = BUSY_TIMEOUT_S,
    ) -> Self:
        """Open the store, made where it is missing and `create` allows it, migrated where it is older.
        A context manager."""
        connection = connect(
            path, create=create, read_only=read_only, synchronous=synchronous, busy_timeout_s=busy_timeout_s
        )
        return cls(connection, path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        with self._named():
            self._connection.close()

    def _named(self) -> AbstractContextManager[None]:
        return named_errors(self.path)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """What is read inside is of one moment, whatever others write meanwhile; nothing is written."""
        with self._named(), transaction(self._connection, "DEFERRED"):
            yield

    # ------------------------------------------------------------ datasets

    def find_dataset(
        self, benchmark: str, *, stamp: str | None = None, fingerprint: str | None = None
    ) -> DatasetRecord | None:
        """The newest dataset of the benchmark with this stamp or fingerprint."""
        with self._named():
            return datasets.find(self._connection, benchmark, stamp=stamp, fingerprint=fingerprint)

    def register_dataset(
        self, benchmark: str, source: str, stamp: str, samples: Iterable[tuple[Sample, str]], *, now: float
    ) -> DatasetRecord:
        """Take in (sample, family) pairs, streamed, in one transaction. The same content is the same dataset
        and only its source and stamp are noted anew. Raises DataError naming ids that occur twice."""
        with self._named():
            return datasets.register(self._connection, benchmark, source, stamp, samples, now)

    def changed_rows(self, one: int, other: int) -> list[str]:
        """Ids of rows that are not the same in two datasets, or in one of them only."""
        with self._named():
            found = self._connection.execute(query("changed_rows"), {"one": one, "other": other})
            return list(dict.fromkeys(row_id for (row_id,) in found))

    # ------------------------------------------------------------ runs

    def create_run(
        self,
        *,
        name: str,
        benchmark: str,
        dataset_id: int,
        model: str,
        endpoint: str,
        host: str,
        identity: Mapping[str, Json],
        config: Mapping[str, Json],
        package_version: str,
        now: float,
        judge_id: int | None = None,
    ) -> RunRecord:
        """A new run without rows: `select` gives it some. Raises StoreError where the name is taken."""
        values = {
            "name": codec.clean(name),
            "benchmark": benchmark,
            "dataset": dataset_id,
            "model": codec.clean(model),
            "endpoint": endpoint,
            "host": host,
            "identity": codec.dump(dict(identity)),
            "config": codec.dump(dict(config)),
            "judge": judge_id,
            "version": package_version,
            "now": now,
        }
        with self._named():
            return runs.create(self._connection, self.path, values)

    def run(self, name: str) -> RunRecord:
        """Raises RunNotFoundError naming runs with a similar name."""
        with self._named():
            return runs.get(self._connection, self.path, name)

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        with self._named():
            return [
                runs.run_from(values) for values in self._connection.execute(query("runs"), {"name": None})
            ]

    def select(self, run_id: int, keep: Callable[[Sample], bool] | None, limit: int | None) -> int:
        """Make the first `limit` rows that `keep` accepts part of the run; None: all. Rows are only ever
        added, so a larger limit makes the run grow. Returns how many rows the run has now."""
        with self._named():
            return runs.select(self._connection, run_id, keep, limit)

    def route_samples(self, run_id: int) -> list[Sample]:
        """One selected row of each route."""
        with self._named():
            found = self._connection.execute(query("route_samples"), {"run": run_id})
            return [codec.sample_from(values[1:])[0] for values in found]

    def judge(self, name: str, identity: Mapping[str, Json], *, now: float) -> JudgeRecord:
        """The judge of this identity; a new one gets `name`, or `name-2`, `name-3` where it is taken."""
        with self._named():
            return runs.judge(self._connection, name, identity, now)

    def judges(self, run_id: int) -> list[JudgeRecord]:
        """Judges that have given verdicts in this run, oldest first."""
        with self._named():
            found = self._connection.execute(query("judges_of_run"), {"run": run_id})
            return [runs.judge_from(values) for values in found]

    def set_run_judge(self, run_id: int, judge_id: int | None) -> None:
        """From now on this judge's verdicts make the scores. Earlier judges' stay under their names."""
        with self._named():
            self._connection.execute(query("set_run_judge"), {"run": run_id, "judge": judge_id})

    def settle_run_config(
        self, run_id: int, settings: Callable[[Mapping[str, Json]], Mapping[str, Json]]
    ) -> None:
        """What the next resume starts from, made of what is kept now: others may have changed that since it
        was read. What earlier sessions ran with stays with them."""
        with self._named():
            control.settle(self._connection, run_id, settings)

    # ------------------------------------------------------------ what estimates learn from

    def known_judge(self, identity: Mapping[str, Json]) -> int | None:
        """The number of the judge of this identity, where there is one; none is made."""
        with self._named():
            return learning.known_judge(self._connection, identity)

    def usages(self, run_id: int, judge_id: int | None, n: int) -> list[UsageRecord]:
        """What at most `n` replies to a run took, those of a judge or, None, of the model: from rows all over
        the run, and of those only which the endpoint counted."""
        with self._named():
            return learning.usages(self._connection, run_id, judge_id, n)

    def judged_prompts(self, run_id: int, judge_id: int, n: int) -> dict[str, JudgedPrompt]:
        """Row id -> prompt that the judge's verdict answers, of the run's first `n` such rows."""
        with self._named():
            return learning.judged_prompts(self._connection, run_id, judge_id, n)

    # ------------------------------------------------------------ sessions and lease

    def begin_session(
        self,
        run_id: int,
        *,
        kind: str,
        owner: LeaseOwner,
        package_version: str,
        config: Mapping[str, Json],
        now: float,
    ) -> int:
        """Note that a process begins work (`kind`: run, resume, rejudge). Hold the lease first."""
        values = {
            "run": run_id,
            "kind": kind,
            "host": owner.host,
            "pid": owner.pid,
            "version": package_version,
            "config": codec.dump(dict(config)),
            "now": now,
        }
        with self._named():
            return runs.begin_session(self._connection, values)

    def end_session(self, session_id: int, ended: str, *, now: float) -> None:
        """Note how a session ended, in a word (`done`, `interrupted`, ...)."""
        with self._named():
            values = {"session": session_id, "ended": codec.clean(ended), "now": now}
            self._connection.execute(query("end_session"), values)

    def sessions(self, run_id: int) -> tuple[SessionRecord, ...]:
        """Oldest first."""
        with self._named():
            return runs.sessions(self._connection, run_id)

    def acquire_lease(self, run_id: int, owner: LeaseOwner, now: float) -> None:
        """Keep other processes off the run. Raises StoreLockedError saying who has it and since when."""
        with self._named():
            lease.acquire(self._connection, run_id, owner, now)

    def renew_lease(self, run_id: int, owner: LeaseOwner, now: float) -> bool:
        """A sign of life, at least every `lease.BEAT_S` seconds (an engine posts a LeaseBeat to its writer
        instead). False: another process has taken the run over."""
        with self._named():
            return lease.renew(self._connection, run_id, owner, now)

    def release_lease(self, run_id: int, owner: LeaseOwner) -> None:
        with self._named():
            lease.release(self._connection, run_id, owner)

    def leases(self, now: float) -> list[Lease]:
        """Every run that a process holds, or held when it died."""
        with self._named():
            return lease.leases(self._connection, LeaseOwner.current(), now)

    # ------------------------------------------------------------ what a process at work is asked

    def control(self, run_id: int) -> Control:
        """What is asked of the process at work on a run, and what it has done of that."""
        with self._named():
            return control.read(self._connection, run_id)

    def ask(
        self,
        run_id: int,
        *,
        paused: bool | None = None,
        limits: Limits | None = None,
        settle: Callable[[Mapping[str, Json]], Mapping[str, Json]] = dict,
        now: float,
    ) -> int:
        """Ask the process at work to pause or to go on (None: neither), or to keep to other limits; returns
        the number of the request. With limits, `settle` makes the run's new settings of its present ones."""
        with self._named():
            return control.ask(
                self._connection, run_id, paused=paused, limits=limits or {}, settle=settle, now=now
            )

    # ------------------------------------------------------------ batches at providers

    def batches(self, run_id: int, *, only_open: bool = False) -> list[BatchRecord]:
        """Batches of a run, oldest first; `only_open`: those of which more is to come."""
        with self._named():
            return batch_jobs.batches(self._connection, run_id, only_open=only_open)

    def open_batches(self) -> dict[int, int]:
        """Run -> batches that are out at a provider, of the runs that have any."""
        with self._named():
            return batch_jobs.open_by_run(self._connection)

    def forget_batches(self, run_id: int, *, now: float) -> int:
        """Free the rows of a run's batches that are out, as if these had never arrived; returns how many
        batches that were. Hold the lease."""
        with self._named():
            return batch_jobs.forget(self._connection, run_id, now)

    def judge_names(self) -> dict[int, str]:
        """Number -> name, of every judge of the store."""
        with self._named():
            return dict(self._connection.execute(query("judge_numbers")).fetchall())

    # ------------------------------------------------------------ where a run stands

    def counts(self, run_id: int) -> RunCounts:
        with self._named():
            return runs.counts(self._connection, run_id)

    def totals(self, run_id: int) -> RunTotals:
        """Calls, tokens, money and time over all sessions."""
        with self._named():
            return runs.totals(self._connection, run_id)

    # ------------------------------------------------------------ scores

    def score_inputs(
        self, run_id: int, judge_id: int | None, *, only_stale: bool = False
    ) -> Iterator[ScoreInput]:
        """Rows with a reply in order of position, streamed; `only_stale`: those whose score is missing, was
        made with another judge, or knows another verdict than the present one."""
        with self._named():
            yield from scores.inputs(self._connection, run_id, judge_id, only_stale=only_stale)

    def derive_verdicts(self, run_id: int, judge_id: int) -> int:
        """Bring the verdicts of a panel's majority up to date; returns how many changed. For any other judge
        there is nothing to do."""
        with self._named():
            return verdicts.derive(self._connection, run_id, judge_id)

    def replace_scores(
        self,
        run_id: int,
        judge_id: int | None,
        scored: Iterable[tuple[ScoreInput, Answer, Score]],
        *,
        package_version: str,
        now: float,
        publish: Mapping[str, Json] | None = None,
        while_judge: bool = False,
    ) -> Replaced:
        """Store scores, all or none. Consumes a stream (`score_inputs` may feed it) and locks the store only
        at its end. What scores were before they changed is kept: see `last_rescore`. `publish`: in the same
        transaction the judge becomes the run's judge, and these settings its settings. `while_judge`: nothing
        is stored where the run has another judge by then."""
        with self._named():
            return scores.replace(
                self._connection,
                run_id,
                judge_id,
                scored,
                package_version=package_version,
                now=now,
                publish=publish,
                while_judge=while_judge,
            )

    def scores_stale(self, run_id: int, judge_id: int | None) -> bool:
        """Whether a reply or verdict has come since the scores were made."""
        with self._named():
            return scores.stale(self._connection, run_id, judge_id)

    def last_rescore(self, run_id: int) -> Rescore | None:
        """The last time that scores were made anew and some came out otherwise."""
        with self._named():
            return changes.last(self._connection, run_id)

    def score_changes(self, rescore_id: int) -> Iterator[ScoreChange]:
        """The rows whose score it changed, in order of position, streamed."""
        with self._named():
            yield from changes.changes(self._connection, rescore_id)

    def vote_patterns(self, run_id: int) -> Counter[Votes]:
        """The selected rows, counted by what the run's judges said of them."""
        with self._named():
            return votes.patterns(self._connection, run_id)

    def voted_rows(self, run_id: int) -> Iterator[VotedRow]:
        """What they said of each row, in order of position, streamed."""
        with self._named():
            yield from votes.rows(self._connection, run_id)

    # ------------------------------------------------------------ rows

    def rows(self, run_id: int) -> Iterator[RowRecord]:
        """Everything known of each selected row, in order of position, streamed."""
        return (detail.record for detail in self.details(run_id))

    def details(self, run_id: int) -> Iterator[RowDetail]:
        """The same, with every exchange about each row."""
        with self._named():
            yield from rows.details(self._connection, run_id)

    def columns(self, dataset_id: int) -> list[str]:
        """The names that the dataset's rows give to their columns, any row's."""
        with self._named():
            return names.columns(self._connection, dataset_id)

    def outcomes(self, run_id: int) -> Iterator[Outcome]:
        """How each selected row came out, in order of position, streamed; some ten times faster than
        `rows`, which brings the texts along."""
        with self._named():
            yield from outcomes.outcomes(self._connection, run_id)

    def results(self, run_id: int, *, columns: bool = False) -> Iterator[Result]:
        """The score of each selected row under its key, in order of position, streamed: what is the same row
        in two runs over one dataset has the same key. `columns` brings the dataset's columns along."""
        with self._named():
            yield from results.results(self._connection, run_id, columns=columns)

    def flips(self, first: int, second: int, *, among: Sequence[int] = ()) -> Iterator[FlipRecord]:
        """Rows that one of two runs over one dataset has right and the other wrong, in order of position,
        streamed; of those with a score in all of the runs `among`, where given."""
        with self._named():
            yield from results.flips(self._connection, first, second, among or (first, second))

    def joint_counts(self, first: int, second: int) -> JointCounts:
        """How many rows with a score in both of two runs over one dataset are right in which of them."""
        with self._named():
            return results.joint_counts(self._connection, first, second)

    def long_rows(self, run_id: int) -> Iterator[LongRow]:
        """Strata and score of each selected row, in order of position, streamed."""
        with self._named():
            yield from longform.long_rows(self._connection, run_id)

    def attributes(self, run_id: int) -> list[str]:
        """The attributes that the strata of any selected row name."""
        with self._named():
            return names.attributes(self._connection, run_id)

    def row(self, run_id: int, row_id: str) -> RowDetail:
        """One row with every exchange about it. Raises DataError where the run has no such row."""
        with self._named():
            found = rows.row(self._connection, run_id, row_id)
        if found is None:
            raise DataError(f"{self.path}: the run has no row '{row_id}'; `mmbu export` lists the ids.")
        return found
