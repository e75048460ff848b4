-- Named statements that take runs from another store, attached as `theirs`, into `main`; sql.py cuts the file at
-- the lines that begin with `-- name:`. Keys differ between two files, so temporary tables lead from theirs to
-- ours. Whatever is the same in both is there already and left out, so that a second time changes nothing.

-- name: attach_theirs
ATTACH :uri AS theirs;

-- name: new_sample_map
CREATE TEMP TABLE sample_map (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL);

-- name: new_judge_map
CREATE TEMP TABLE judge_map (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL);

-- name: new_session_map
CREATE TEMP TABLE session_map (from_id INTEGER PRIMARY KEY, to_id INTEGER NOT NULL);

-- name: new_same_reply
-- Rows whose reply here is theirs.
CREATE TEMP TABLE same_reply (sample_id INTEGER PRIMARY KEY);

-- name: forget_same_replies
DELETE FROM temp.same_reply;

-- ---------------------------------------------------------------- what there is

-- name: their_runs
SELECT id, name, dataset_id, identity, config FROM theirs.run
WHERE :name IS NULL OR name = :name ORDER BY id;

-- name: our_run
SELECT id, dataset_id, identity, config FROM main.run WHERE name = :name;

-- name: their_datasets
SELECT id, benchmark, fingerprint, rows FROM theirs.dataset
WHERE id IN (SELECT dataset_id FROM theirs.run WHERE :name IS NULL OR name = :name) ORDER BY id;

-- name: their_judges
-- Those that a run names or has been judged by; a majority's verdicts are derived from the others'.
SELECT id, name, identity FROM theirs.judge
WHERE id IN (
    SELECT judge_id FROM theirs.run WHERE :name IS NULL OR name = :name
    UNION SELECT judge_id FROM theirs.verdict
        WHERE run_id IN (SELECT id FROM theirs.run WHERE :name IS NULL OR name = :name)
    UNION SELECT judge_id FROM theirs.call
        WHERE run_id IN (SELECT id FROM theirs.run WHERE :name IS NULL OR name = :name)
    UNION SELECT judge_id FROM theirs.batch
        WHERE run_id IN (SELECT id FROM theirs.run WHERE :name IS NULL OR name = :name)
    UNION SELECT judge_id FROM theirs.score
        WHERE run_id IN (SELECT id FROM theirs.run WHERE :name IS NULL OR name = :name)
) ORDER BY id;

-- ---------------------------------------------------------------- datasets, judges, runs

-- name: take_dataset
INSERT INTO main.dataset (benchmark, source, stamp, fingerprint, rows, first_key, created_at)
SELECT benchmark, source, stamp, fingerprint, rows, (SELECT coalesce(max(id), 0) + 1 FROM main.sample), created_at
FROM theirs.dataset WHERE id = :from;

-- name: take_samples
INSERT INTO main.sample (id, dataset_id, position, row_id, family, route, question, answer, options, images,
    strata, fields)
SELECT (SELECT first_key FROM main.dataset WHERE id = :to) + position, :to, position, row_id, family, route,
    question, answer, options, images, strata, fields
FROM theirs.sample WHERE dataset_id = :from ORDER BY position;

-- name: last_key
SELECT last_insert_rowid();

-- name: map_samples
-- By their ids: a blank line in one of the two tables shifts all positions, and is no change of content.
INSERT INTO temp.sample_map (from_id, to_id)
SELECT their.id, our.id
FROM theirs.sample AS their
    JOIN main.sample AS our ON our.dataset_id = :to AND our.row_id = their.row_id
WHERE their.dataset_id = :from;

-- name: map_judge
INSERT INTO temp.judge_map (from_id, to_id) VALUES (:from, :to);

-- name: take_run
INSERT INTO main.run (name, benchmark, dataset_id, model, endpoint, host, identity, config, package_version,
    created_at)
SELECT :name, benchmark, :dataset, model, endpoint, host, identity, :config, package_version, created_at
FROM theirs.run WHERE id = :from;

-- name: take_standing
-- Who judges the run and when it was scored, where nobody knows here.
UPDATE main.run SET
    judge_id = coalesce(judge_id, (
        SELECT to_id FROM theirs.run AS their JOIN temp.judge_map ON from_id = their.judge_id
        WHERE their.id = :from)),
    scored_version = iif(scored_at IS NULL,
        (SELECT their.scored_version FROM theirs.run AS their WHERE their.id = :from), scored_version),
    scored_at = coalesce(scored_at, (SELECT their.scored_at FROM theirs.run AS their WHERE their.id = :from))
WHERE id = :to;

-- name: other_judge
-- Whether theirs is judged by somebody else than ours.
SELECT our.judge_id IS NOT map.to_id
FROM main.run AS our JOIN theirs.run AS their ON their.id = :from
    LEFT JOIN temp.judge_map AS map ON map.from_id = their.judge_id
WHERE our.id = :to AND their.judge_id IS NOT NULL;

-- ---------------------------------------------------------------- facts

-- name: take_selection
INSERT OR IGNORE INTO main.selection (run_id, sample_id)
SELECT :to, map.to_id
FROM theirs.selection AS their JOIN temp.sample_map AS map ON map.from_id = their.sample_id
WHERE their.run_id = :from;

-- name: take_sessions
INSERT INTO main.session (run_id, kind, started_at, ended_at, ended, host, pid, package_version, config)
SELECT :to, kind, started_at, ended_at, ended, host, pid, package_version, config
FROM theirs.session AS their
WHERE their.run_id = :from AND NOT EXISTS (
    SELECT 1 FROM main.session AS our
    WHERE our.run_id = :to AND our.kind = their.kind AND our.started_at = their.started_at
        AND our.host = their.host AND our.pid = their.pid)
ORDER BY their.id;

-- name: map_sessions
INSERT INTO temp.session_map (from_id, to_id)
SELECT their.id, min(our.id)
FROM theirs.session AS their
    JOIN main.session AS our ON our.run_id = :to AND our.kind = their.kind
        AND our.started_at = their.started_at AND our.host = their.host AND our.pid = their.pid
WHERE their.run_id = :from
GROUP BY their.id;

-- name: end_sessions
-- What ended there since it was taken.
UPDATE main.session SET (ended_at, ended) = (
    SELECT their.ended_at, their.ended
    FROM theirs.session AS their JOIN temp.session_map AS map ON map.from_id = their.id
    WHERE map.to_id = session.id)
WHERE run_id = :to AND (ended IS NULL OR ended = 'died') AND EXISTS (
    SELECT 1 FROM theirs.session AS their JOIN temp.session_map AS map ON map.from_id = their.id
    WHERE map.to_id = session.id AND their.ended IS NOT NULL
        AND (session.ended IS NULL OR their.ended <> 'died'));

-- name: take_calls
-- A second reply for a row was paid for as well: it is kept as a call, and the row keeps the reply it has.
INSERT INTO main.call (run_id, session_id, sample_id, judge_id, attempt, final, started_at, total_s,
    first_token_s, ok, kind, words, status, retry_after_s, request_id, model, input_tokens, output_tokens,
    reasoning_tokens, cached_tokens, cache_write_tokens, usage_reported, cost_usd, text, reasoning, prompt_sha,
    image_scale, image_sha256, image_note)
SELECT :to, session_id, sample_id, judge_id, attempt, final, started_at, total_s,
    first_token_s, iif(second, 0, ok), iif(second, :duplicate, kind),
    iif(second, 'the row has a reply already; this one ended with ' || kind, words),
    status, retry_after_s, request_id, model, input_tokens, output_tokens,
    reasoning_tokens, cached_tokens, cache_write_tokens, usage_reported, cost_usd, text, reasoning, prompt_sha,
    image_scale, image_sha256, image_note
FROM (
    SELECT session_map.to_id AS session_id, sample_map.to_id AS sample_id, judge_map.to_id AS judge_id,
        their.id AS their_id, their.attempt, their.final, their.started_at, their.total_s, their.first_token_s,
        their.ok, their.kind, their.words, their.status, their.retry_after_s, their.request_id, their.model,
        their.input_tokens, their.output_tokens, their.reasoning_tokens, their.cached_tokens,
        their.cache_write_tokens, their.usage_reported, their.cost_usd, their.text, their.reasoning,
        their.prompt_sha, their.image_scale, their.image_sha256, their.image_note,
        their.ok = 1 AND their.judge_id IS NULL AND EXISTS (
            SELECT 1 FROM main.call AS our INDEXED BY one_reply
            WHERE our.run_id = :to AND our.sample_id = sample_map.to_id AND our.ok = 1
                AND our.judge_id IS NULL) AS second
    FROM theirs.call AS their
        JOIN temp.session_map ON session_map.from_id = their.session_id
        JOIN temp.sample_map ON sample_map.from_id = their.sample_id
        LEFT JOIN temp.judge_map ON judge_map.from_id = their.judge_id
    WHERE their.run_id = :from AND NOT EXISTS (
        SELECT 1 FROM main.call AS our INDEXED BY call_of_sample
        WHERE our.run_id = :to AND our.sample_id = sample_map.to_id
            AND our.session_id = session_map.to_id AND our.judge_id IS judge_map.to_id
            AND our.attempt = their.attempt AND our.started_at = their.started_at)
)
ORDER BY their_id;

-- name: take_batches
-- Batches that are out stay out, and are fetched by whoever resumes the run; of one that both know, the state
-- that is further on counts.
INSERT INTO main.batch (run_id, session_id, judge_id, marker, url, state, requests, bytes, worst_usd, created_at,
    sent_at, ended_at, remote_id, status, finished, words)
SELECT :to, session_map.to_id, judge_map.to_id, their.marker, their.url, their.state, their.requests,
    their.bytes, their.worst_usd, their.created_at, their.sent_at, their.ended_at, their.remote_id, their.status,
    their.finished, their.words
FROM theirs.batch AS their
    JOIN temp.session_map ON session_map.from_id = their.session_id
    LEFT JOIN temp.judge_map ON judge_map.from_id = their.judge_id
WHERE their.run_id = :from
ORDER BY their.id
ON CONFLICT (marker) DO UPDATE
SET state = excluded.state, sent_at = excluded.sent_at, ended_at = excluded.ended_at,
    remote_id = excluded.remote_id, status = excluded.status, finished = excluded.finished,
    words = excluded.words
WHERE batch.state = 'submitting' AND excluded.state <> 'submitting'
    OR batch.state = 'submitted' AND excluded.state NOT IN ('submitting', 'submitted');

-- name: take_batch_items
INSERT INTO main.batch_item (batch_id, number, sample_id, attempt, prompt_sha, raw_input, image_scale,
    image_sha256, image_note, fate)
SELECT our.id, item.number, sample_map.to_id, item.attempt, item.prompt_sha, item.raw_input, item.image_scale,
    item.image_sha256, item.image_note, item.fate
FROM theirs.batch AS their
    JOIN main.batch AS our ON our.marker = their.marker AND our.run_id = :to
    JOIN theirs.batch_item AS item ON item.batch_id = their.id
    JOIN temp.sample_map ON sample_map.from_id = item.sample_id
WHERE their.run_id = :from
ON CONFLICT (batch_id, number) DO UPDATE SET fate = excluded.fate
WHERE batch_item.fate IS NULL AND excluded.fate IS NOT NULL;

-- name: find_same_replies
INSERT INTO temp.same_reply (sample_id)
SELECT our.sample_id
FROM theirs.call AS their
    JOIN temp.session_map ON session_map.from_id = their.session_id
    JOIN temp.sample_map ON sample_map.from_id = their.sample_id
    JOIN main.call AS our INDEXED BY one_reply ON our.run_id = :to AND our.sample_id = sample_map.to_id
        AND our.ok = 1 AND our.judge_id IS NULL
WHERE their.run_id = :from AND their.ok = 1 AND their.judge_id IS NULL
    AND our.session_id = session_map.to_id AND our.attempt = their.attempt
    AND our.started_at = their.started_at;

-- name: take_verdicts
-- Those of the reply that the row has here. A verdict that is there is only displaced where it is unusable.
INSERT INTO main.verdict (run_id, sample_id, judge_id, correct, reply, prompt_sha, shared)
SELECT :to, sample_map.to_id, judge_map.to_id, their.correct, their.reply, their.prompt_sha, their.shared
FROM theirs.verdict AS their
    JOIN temp.sample_map ON sample_map.from_id = their.sample_id
    JOIN temp.judge_map ON judge_map.from_id = their.judge_id
    JOIN temp.same_reply ON same_reply.sample_id = sample_map.to_id
WHERE their.run_id = :from
ON CONFLICT (run_id, sample_id, judge_id) DO UPDATE
SET correct = excluded.correct, reply = excluded.reply, prompt_sha = excluded.prompt_sha,
    shared = excluded.shared
WHERE verdict.correct IS NULL AND excluded.correct IS NOT NULL;

-- name: take_scores
INSERT OR IGNORE INTO main.score (run_id, sample_id, judge_id, verdict, prompt_sha, answer, how, status,
    correct, tp, fp, fn, detail)
SELECT :to, sample_map.to_id, judge_map.to_id, their.verdict, their.prompt_sha, their.answer, their.how,
    their.status, their.correct, their.tp, their.fp, their.fn, their.detail
FROM theirs.score AS their
    JOIN temp.sample_map ON sample_map.from_id = their.sample_id
    JOIN temp.same_reply ON same_reply.sample_id = sample_map.to_id
    LEFT JOIN temp.judge_map ON judge_map.from_id = their.judge_id
WHERE their.run_id = :from;

-- name: take_rescores
INSERT INTO main.rescore (run_id, at, package_version)
SELECT :to, at, package_version FROM theirs.rescore AS their
WHERE their.run_id = :from AND NOT EXISTS (
    SELECT 1 FROM main.rescore AS our WHERE our.run_id = :to AND our.at = their.at)
ORDER BY their.id;

-- name: take_score_changes
INSERT OR IGNORE INTO main.score_change (rescore_id, sample_id, cause, answer, how, status, correct, tp, fp,
    fn)
SELECT our.id, sample_map.to_id, change.cause, change.answer, change.how, change.status, change.correct,
    change.tp, change.fp, change.fn
FROM theirs.score_change AS change
    JOIN theirs.rescore AS their ON their.id = change.rescore_id
    JOIN main.rescore AS our ON our.run_id = :to AND our.at = their.at
    JOIN temp.sample_map ON sample_map.from_id = change.sample_id
WHERE their.run_id = :from;

-- name: duplicates
SELECT count(*) FROM main.call WHERE run_id = :run AND kind = :duplicate;
