"""SQLite: one file, many runs, every fact that was paid for.

`Store` is the synchronous door, `Writer` and `Reader` are those of a running engine.
"""

from mmbu_async.store.batch_jobs import (
    BatchBegun,
    BatchClosed,
    BatchFact,
    BatchItem,
    BatchItems,
    BatchRecord,
    BatchSent,
    BatchState,
    BatchStatus,
    Fate,
    ItemsClosed,
    OtherItemsClosed,
)
from mmbu_async.store.browse import Browser
from mmbu_async.store.calls import CallRecord, Heeded, LeaseBeat, VerdictRecord
from mmbu_async.store.changes import Cause, Rescore, ScoreChange
from mmbu_async.store.control import Control, Limits
from mmbu_async.store.learning import JudgedPrompt, UsageRecord
from mmbu_async.store.lease import Lease, LeaseOwner
from mmbu_async.store.listed import Choices, ListedRow, Place, RowFilter, RowVerdict
from mmbu_async.store.longform import LongRow
from mmbu_async.store.outcomes import Outcome
from mmbu_async.store.reader import Reader, RowToJudge
from mmbu_async.store.records import (
    CallTotals,
    DatasetRecord,
    JudgeRecord,
    RunCounts,
    RunRecord,
    RunTotals,
    SessionRecord,
    SharedVerdicts,
    StoredSample,
    Unpriced,
)
from mmbu_async.store.results import FlipRecord, JointCounts, Result
from mmbu_async.store.rows import RowDetail, RowRecord, StoredCall
from mmbu_async.store.scores import Replaced, ScoreInput
from mmbu_async.store.store import Store
from mmbu_async.store.votes import Standing, VotedRow, Votes
from mmbu_async.store.writer import Writer

__all__ = [
    "BatchBegun",
    "BatchClosed",
    "BatchFact",
    "BatchItem",
    "BatchItems",
    "BatchRecord",
    "BatchSent",
    "BatchState",
    "BatchStatus",
    "Browser",
    "CallRecord",
    "CallTotals",
    "Cause",
    "Choices",
    "Control",
    "DatasetRecord",
    "Fate",
    "FlipRecord",
    "Heeded",
    "ItemsClosed",
    "JointCounts",
    "JudgeRecord",
    "JudgedPrompt",
    "Lease",
    "LeaseBeat",
    "LeaseOwner",
    "Limits",
    "ListedRow",
    "LongRow",
    "OtherItemsClosed",
    "Outcome",
    "Place",
    "Reader",
    "Replaced",
    "Rescore",
    "Result",
    "RowDetail",
    "RowFilter",
    "RowRecord",
    "RowToJudge",
    "RowVerdict",
    "RunCounts",
    "RunRecord",
    "RunTotals",
    "ScoreChange",
    "ScoreInput",
    "SessionRecord",
    "SharedVerdicts",
    "Standing",
    "Store",
    "StoredCall",
    "StoredSample",
    "Unpriced",
    "UsageRecord",
    "VerdictRecord",
    "VotedRow",
    "Votes",
    "Writer",
]
