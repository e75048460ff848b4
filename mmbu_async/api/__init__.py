"""The same for Python callers as the command line offers, under the same names.

    result = await evaluate(RunConfig(model="gpt-4o-mini"))
    print(result.report().overall.accuracy)
    for row in result:
        print(row.sample.id, row.score)

Whatever goes wrong on purpose is an `MmbuError`.
"""

from mmbu_async.api.benching import bench, bench_compare, bench_report, benches
from mmbu_async.api.checking import DataCheck, benchmarks, check_data, doctor, dry_run
from mmbu_async.api.comparing import compare, compare_pairs, judges, plan
from mmbu_async.api.reporting import Shown, card, export, export_long, report, rows, show
from mmbu_async.api.running import REJUDGE_SETTINGS, RunResult, call_back, evaluate, rejudge, resume
from mmbu_async.api.scoring import Rescored, rescore
from mmbu_async.api.steering import (
    RunBatches,
    RunStatus,
    batches,
    continue_run,
    forget_batches,
    limit,
    pause,
    status,
)
from mmbu_async.api.storing import store_backup, store_check, store_export, store_merge, store_vacuum
from mmbu_async.api.synchronous import (
    bench_sync,
    call_back_sync,
    evaluate_sync,
    rejudge_sync,
    resume_sync,
    run_sync,
)

__all__ = [
    "REJUDGE_SETTINGS",
    "DataCheck",
    "Rescored",
    "RunBatches",
    "RunResult",
    "RunStatus",
    "Shown",
    "batches",
    "bench",
    "bench_compare",
    "bench_report",
    "bench_sync",
    "benches",
    "benchmarks",
    "call_back",
    "call_back_sync",
    "card",
    "check_data",
    "compare",
    "compare_pairs",
    "continue_run",
    "doctor",
    "dry_run",
    "evaluate",
    "evaluate_sync",
    "export",
    "export_long",
    "forget_batches",
    "judges",
    "limit",
    "pause",
    "plan",
    "rejudge",
    "rejudge_sync",
    "report",
    "rescore",
    "resume",
    "resume_sync",
    "rows",
    "run_sync",
    "show",
    "status",
    "store_backup",
    "store_check",
    "store_export",
    "store_merge",
    "store_vacuum",
]
