-- Named statements that look whether a store holds together; sql.py cuts the file at the lines that begin with
-- `-- name:`. Each `check_` gives the number of places where something is wrong, and the first of them.

-- name: run_count
SELECT count(*) FROM run;

-- name: leases
SELECT id, name, lease_host, lease_boot, lease_pid, lease_process, lease_since, lease_beat
FROM run WHERE lease_host IS NOT NULL ORDER BY id;

-- name: made_things
SELECT type || ' ' || name FROM sqlite_master WHERE sql IS NOT NULL;

-- name: all_datasets
SELECT id, benchmark, source, fingerprint, rows FROM dataset ORDER BY id;

-- name: scored_runs
SELECT id, name, judge_id FROM run ORDER BY id;

-- name: open_sessions
SELECT session.id, session.kind, session.host, session.pid, run.id, run.name
FROM session JOIN run ON run.id = session.run_id WHERE session.ended_at IS NULL ORDER BY session.id;

-- name: check_one_reply
-- NOT INDEXED: the index that forbids it may be what is missing.
SELECT count(*), min(twice.run_id), min(twice.sample_id) FROM (
    SELECT run_id, sample_id FROM call NOT INDEXED WHERE ok = 1 AND judge_id IS NULL
    GROUP BY run_id, sample_id HAVING count(*) > 1
) AS twice;

-- name: check_calls_selected
SELECT count(*), min(call.run_id), min(call.sample_id) FROM call
WHERE NOT EXISTS (
    SELECT 1 FROM selection WHERE selection.run_id = call.run_id AND selection.sample_id = call.sample_id);

-- name: check_calls_session
SELECT count(*), min(call.run_id), min(call.sample_id)
FROM call JOIN session ON session.id = call.session_id WHERE session.run_id <> call.run_id;

-- name: check_calls_kind
SELECT count(*), min(call.run_id), min(call.sample_id) FROM call
WHERE kind NOT IN (SELECT value FROM json_each(iif(ok = 1, :finishes, :failures)))
    OR ok = 1 AND (text IS NULL OR reasoning IS NULL);

-- name: check_selection
SELECT count(*), min(selection.run_id), min(selection.sample_id)
FROM selection JOIN run ON run.id = selection.run_id JOIN sample ON sample.id = selection.sample_id
WHERE sample.dataset_id <> run.dataset_id;

-- name: check_positions
SELECT count(*), NULL, min(sample.id)
FROM sample JOIN dataset ON dataset.id = sample.dataset_id
WHERE sample.id <> dataset.first_key + sample.position;

-- name: check_verdicts_replied
SELECT count(*), min(verdict.run_id), min(verdict.sample_id) FROM verdict
WHERE NOT EXISTS (
    SELECT 1 FROM call WHERE call.run_id = verdict.run_id AND call.sample_id = verdict.sample_id
        AND call.ok = 1 AND call.judge_id IS NULL);

-- name: check_verdicts_bought
-- A majority's verdicts are derived, and those that are shared were bought for another row.
SELECT count(*), min(verdict.run_id), min(verdict.sample_id)
FROM verdict JOIN judge ON judge.id = verdict.judge_id
WHERE verdict.correct IS NOT NULL AND verdict.shared = 0
    AND json_extract(judge.identity, '$.panel') IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM call WHERE call.run_id = verdict.run_id AND call.sample_id = verdict.sample_id
            AND call.judge_id = verdict.judge_id AND call.ok = 1
            AND call.prompt_sha IS verdict.prompt_sha);

-- name: check_verdicts_shared
SELECT count(*), min(verdict.run_id), min(verdict.sample_id) FROM verdict
WHERE verdict.correct IS NOT NULL AND verdict.shared = 1
    AND NOT EXISTS (
        SELECT 1 FROM call INDEXED BY judge_reply
        WHERE call.judge_id = verdict.judge_id AND call.prompt_sha = verdict.prompt_sha
            AND call.ok = 1 AND call.judge_id IS NOT NULL);

-- name: check_scores_replied
SELECT count(*), min(score.run_id), min(score.sample_id) FROM score
WHERE NOT EXISTS (
    SELECT 1 FROM call WHERE call.run_id = score.run_id AND call.sample_id = score.sample_id
        AND call.ok = 1 AND call.judge_id IS NULL);

-- name: check_empty_runs
SELECT count(*), min(run.id), NULL FROM run
WHERE NOT EXISTS (SELECT 1 FROM selection WHERE selection.run_id = run.id);

-- name: check_json
SELECT count(*), min(run_id), min(sample_id) FROM (
    SELECT NULL AS run_id, id AS sample_id, json_valid(options) AND json_valid(images) AND json_valid(strata)
        AND json_valid(fields) AS valid FROM sample
    UNION ALL SELECT NULL, NULL, json_valid(identity) FROM judge
    UNION ALL SELECT id, NULL, json_valid(identity) AND json_valid(config) FROM run
    UNION ALL SELECT run_id, NULL, json_valid(config) FROM session
    UNION ALL SELECT run_id, sample_id, json_valid(detail) FROM score
) WHERE NOT valid;

-- name: place
SELECT (SELECT name FROM run WHERE id = :run), (SELECT row_id FROM sample WHERE id = :sample);

-- name: rows_of_dataset
SELECT count(*) FROM sample WHERE dataset_id = :dataset;
