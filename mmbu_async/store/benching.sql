-- Named statements of measurements of endpoints; sql.py cuts the file at the lines that begin with `-- name:`.

-- name: insert_bench
INSERT INTO bench (name, config, host, package_version, created_at)
VALUES (:name, :config, :host, :version, :now)
ON CONFLICT (name) DO NOTHING;

-- name: end_bench
UPDATE bench SET ended_at = :now, ended = :ended, result = :result WHERE id = :bench;

-- name: benches
SELECT bench.id, bench.name, bench.config, bench.host, bench.package_version, bench.created_at,
    bench.ended_at, bench.ended, bench.result,
    (SELECT count(*) FROM bench_request JOIN bench_stage ON bench_stage.id = bench_request.stage_id
        WHERE bench_stage.bench_id = bench.id),
    (SELECT total(cost_usd) FROM bench_request JOIN bench_stage ON bench_stage.id = bench_request.stage_id
        WHERE bench_stage.bench_id = bench.id)
FROM bench WHERE :name IS NULL OR bench.name = :name ORDER BY bench.id;

-- name: bench_names
SELECT name FROM bench ORDER BY id;

-- name: insert_bench_stage
INSERT INTO bench_stage (
    bench_id, number, part, role, target, plan, began_at, begin_s, end_s, ended, drained_s, gaps, lags, ticks)
VALUES (:bench, :number, :part, :role, :target, :plan, :began_at, :begin_s, :end_s, :ended, :drained_s, :gaps,
    :lags, :ticks);

-- name: bench_stages
SELECT id, number, part, role, target, plan, began_at, begin_s, end_s, ended, drained_s, gaps, lags, ticks
FROM bench_stage WHERE bench_id = :bench ORDER BY number;

-- name: insert_bench_request
INSERT INTO bench_request (/* columns */) VALUES (/* values */);

-- name: bench_requests
SELECT /* columns */ FROM bench_request WHERE stage_id = :stage ORDER BY number;
