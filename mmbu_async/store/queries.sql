-- Named statements; sql.py cuts the file at the lines that begin with `-- name:`.

-- ---------------------------------------------------------------- lease and sessions

-- name: lease
SELECT name, lease_host, lease_boot, lease_pid, lease_process, lease_since, lease_beat
FROM run WHERE id = :run;

-- name: take_lease
UPDATE run SET lease_host = :host, lease_boot = :boot, lease_pid = :pid, lease_process = :process,
    lease_since = :now, lease_beat = :now
WHERE id = :run;

-- name: beat
UPDATE run SET lease_beat = ?
WHERE id = ? AND lease_host = ? AND lease_boot = ? AND lease_pid = ? AND lease_process = ?;

-- name: release_lease
UPDATE run SET lease_host = NULL, lease_boot = NULL, lease_pid = NULL, lease_process = NULL,
    lease_since = NULL, lease_beat = NULL
WHERE id = ? AND lease_host = ? AND lease_boot = ? AND lease_pid = ? AND lease_process = ?;

-- name: close_dead_sessions
-- Its last sign of life: a beat, which comes seldom, or a call, which came between two of them.
UPDATE session SET ended = 'died',
    ended_at = max(
        started_at,
        coalesce((SELECT lease_beat FROM run WHERE id = :run), started_at),
        coalesce(
            (SELECT max(started_at + total_s) FROM call WHERE run_id = :run AND session_id = session.id),
            started_at
        )
    )
WHERE run_id = :run AND ended_at IS NULL;

-- name: begin_session
INSERT INTO session (run_id, kind, started_at, host, pid, package_version, config)
VALUES (:run, :kind, :now, :host, :pid, :version, :config);

-- name: end_session
UPDATE session SET ended = :ended, ended_at = :now WHERE id = :session AND ended_at IS NULL;

-- name: sessions
SELECT id, run_id, kind, started_at, ended_at, ended, host, pid, package_version, config
FROM session WHERE run_id = :run ORDER BY id;

-- ---------------------------------------------------------------- datasets

-- name: datasets
SELECT id, benchmark, source, stamp, fingerprint, rows, created_at
FROM dataset
WHERE benchmark = :benchmark AND (:stamp IS NULL OR stamp = :stamp)
    AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
ORDER BY id DESC LIMIT 1;

-- name: changed_rows
SELECT row_id FROM (
    SELECT row_id, position, question, answer, options, route, images, fields FROM sample
    WHERE dataset_id IN (:one, :other)
)
GROUP BY row_id, question, answer, options, route, images, fields
HAVING count(*) = 1
ORDER BY min(position);

-- name: insert_dataset
INSERT INTO dataset (benchmark, source, stamp, fingerprint, rows, first_key, created_at)
VALUES (:benchmark, :source, :stamp, :fingerprint, :rows,
    (SELECT coalesce(max(id), 0) + 1 FROM sample), :now);

-- name: restamp_dataset
UPDATE dataset SET source = :source, stamp = :stamp WHERE id = :dataset;

-- name: new_samples
CREATE TEMP TABLE new_sample (
    position INTEGER PRIMARY KEY, row_id UNIQUE, family, route, question, answer, options, images, strata, fields
);

-- name: drop_new_samples
DROP TABLE temp.new_sample;

-- name: put_new_sample
INSERT INTO temp.new_sample VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (row_id) DO NOTHING;

-- name: has_new_sample
SELECT 1 FROM temp.new_sample WHERE position = ?;

-- name: publish_samples
INSERT INTO sample (id, dataset_id, position, row_id, family, route, question, answer, options, images,
    strata, fields)
SELECT (SELECT first_key FROM dataset WHERE id = :dataset) + position, :dataset, position, row_id, family,
    route, question, answer, options, images, strata, fields
FROM temp.new_sample ORDER BY position;

-- ---------------------------------------------------------------- runs and judges

-- name: insert_run
INSERT INTO run (name, benchmark, dataset_id, model, endpoint, host, identity, config, judge_id,
    package_version, created_at)
VALUES (:name, :benchmark, :dataset, :model, :endpoint, :host, :identity, :config, :judge, :version, :now)
ON CONFLICT (name) DO NOTHING;

-- name: runs
SELECT run.id, run.name, run.benchmark, run.model, run.endpoint, run.host, run.identity, run.config,
    run.package_version, run.created_at, run.scored_at, run.scored_version,
    dataset.id, dataset.benchmark, dataset.source, dataset.stamp, dataset.fingerprint, dataset.rows,
    dataset.created_at,
    judge.id, judge.name, judge.identity
FROM run JOIN dataset ON dataset.id = run.dataset_id LEFT JOIN judge ON judge.id = run.judge_id
WHERE :name IS NULL OR run.name = :name
ORDER BY run.id;

-- name: run_names
SELECT name FROM run ORDER BY id;

-- name: set_run_judge
UPDATE run SET judge_id = :judge WHERE id = :run;

-- name: judge_of_run
SELECT judge_id FROM run WHERE id = :run;

-- name: set_run_config
UPDATE run SET config = :config WHERE id = :run;

-- name: judge_of_identity
SELECT id, name, identity FROM judge WHERE identity = :identity;

-- name: judge_names
SELECT name FROM judge;

-- name: judges_of_run
SELECT id, name, identity FROM judge
WHERE EXISTS (SELECT 1 FROM verdict WHERE verdict.run_id = :run AND verdict.judge_id = judge.id)
ORDER BY id;

-- name: insert_judge
INSERT INTO judge (name, identity, created_at) VALUES (:name, :identity, :now);

-- ---------------------------------------------------------------- selection

-- name: route_samples
-- In two steps, so that whole rows are read only of the few that are wanted.
SELECT id, position, row_id, family, route, question, answer, options, images, strata, fields
FROM (
    SELECT min(sample.id) AS first FROM selection JOIN sample ON sample.id = selection.sample_id
    WHERE selection.run_id = :run
    GROUP BY route
) JOIN sample ON sample.id = first
ORDER BY id;

-- name: selected
SELECT count(*) FROM selection WHERE run_id = :run;

-- name: dataset_of_run
SELECT dataset.id, dataset.first_key FROM run JOIN dataset ON dataset.id = run.dataset_id WHERE run.id = :run;

-- NOT INDEXED: along the keys, which rise with the position; an index would need a sort.

-- name: select_first
INSERT OR IGNORE INTO selection (run_id, sample_id)
SELECT :run, id FROM sample NOT INDEXED
WHERE id >= :first AND dataset_id = :dataset
ORDER BY id LIMIT :limit;

-- name: select_one
INSERT OR IGNORE INTO selection (run_id, sample_id) VALUES (?, ?);

-- name: dataset_page
SELECT id, position, row_id, family, route, question, answer, options, images, strata, fields
FROM sample NOT INDEXED
WHERE id >= :first AND dataset_id = :dataset
ORDER BY id LIMIT :n;

-- ---------------------------------------------------------------- pages for the engine
-- A page comes as one JSON text: a step of SQLite that returns one row waits for the interpreter's lock
-- once, not once a row. The columns are the arguments of codec.sample_from and codec.completion_from.

-- name: pending
SELECT json_group_array(json_array(id, position, row_id, family, route, question, answer, options, images,
    strata, fields))
FROM (
    SELECT sample.* FROM run
        JOIN dataset ON dataset.id = run.dataset_id
        JOIN selection ON selection.run_id = run.id AND selection.sample_id > dataset.first_key + :after
        JOIN sample ON sample.id = selection.sample_id
    WHERE run.id = :run
        AND NOT EXISTS (
            SELECT 1 FROM call
            WHERE call.run_id = :run AND call.sample_id = selection.sample_id
                AND call.ok = 1 AND call.judge_id IS NULL)
        AND (:since IS NULL OR NOT EXISTS (
            SELECT 1 FROM call
            WHERE call.run_id = :run AND call.sample_id = selection.sample_id
                AND call.session_id >= :since AND call.final = 1 AND call.ok = 0 AND call.judge_id IS NULL))
        AND NOT EXISTS (
            -- A row that is out in a batch is being asked already.
            SELECT 1 FROM batch_item INDEXED BY open_batch_item JOIN batch ON batch.id = batch_item.batch_id
            WHERE batch_item.sample_id = selection.sample_id AND batch_item.fate IS NULL
                AND batch.run_id = :run AND batch.judge_id IS NULL)
    ORDER BY selection.sample_id LIMIT :n
);

-- name: to_judge
SELECT json_group_array(json_array(id, position, row_id, family, route, question, answer, options, images,
    strata, fields, text, kind, words, reasoning, reported_model, request_id, input_tokens, output_tokens,
    reasoning_tokens, cached_tokens, cache_write_tokens, usage_reported, json(usable)))
FROM (
    SELECT sample.*, call.text, call.kind, call.words, call.reasoning, call.model AS reported_model,
        call.request_id, call.input_tokens, call.output_tokens, call.reasoning_tokens, call.cached_tokens,
        call.cache_write_tokens, call.usage_reported,
        (SELECT json_group_object(verdict.judge_id, hex(verdict.prompt_sha)) FROM verdict
            WHERE verdict.run_id = :run AND verdict.sample_id = selection.sample_id
                AND verdict.judge_id IN (SELECT value FROM json_each(:judges))
                AND verdict.correct IS NOT NULL) AS usable
    FROM run
        JOIN dataset ON dataset.id = run.dataset_id
        JOIN selection ON selection.run_id = run.id AND selection.sample_id > dataset.first_key + :after
        JOIN call INDEXED BY one_reply ON call.run_id = :run AND call.sample_id = selection.sample_id
            AND call.ok = 1 AND call.judge_id IS NULL
        JOIN sample ON sample.id = selection.sample_id
    WHERE run.id = :run
        AND (:judged OR json_array_length(:judges) > (
            SELECT count(*) FROM verdict
            WHERE verdict.run_id = :run AND verdict.sample_id = selection.sample_id
                AND verdict.judge_id IN (SELECT value FROM json_each(:judges))
                AND verdict.correct IS NOT NULL))
        AND (:before IS NULL OR call.session_id < :before)
    ORDER BY selection.sample_id LIMIT :n
);

-- name: judge_replies
SELECT json_group_array(json_array(sha, text))
FROM (
    SELECT hex(prompt_sha) AS sha, text FROM call INDEXED BY judge_reply
    WHERE judge_id = ? AND ok = 1 AND judge_id IS NOT NULL AND prompt_sha IN (/* shas */)
    ORDER BY id
);

-- ---------------------------------------------------------------- writing
-- The writer completes these with as many rows of values as fit; column1 > 0 leaves out those that pad.

-- name: insert_calls
INSERT INTO call (/* columns */)
SELECT * FROM (VALUES /* rows */) WHERE column1 > 0
ON CONFLICT (run_id, sample_id) WHERE ok = 1 AND judge_id IS NULL DO NOTHING;

-- name: replies_kept
SELECT json_group_array(json_array(call.run_id, call.sample_id, call.session_id, call.attempt))
FROM json_each(?) AS wanted
    JOIN call INDEXED BY one_reply ON call.run_id = json_extract(wanted.value, '$[0]')
        AND call.sample_id = json_extract(wanted.value, '$[1]')
        AND call.ok = 1 AND call.judge_id IS NULL;

-- name: put_verdicts
INSERT INTO verdict (/* columns */)
SELECT * FROM (VALUES /* rows */) WHERE column1 > 0
ON CONFLICT (run_id, sample_id, judge_id) DO UPDATE
SET correct = excluded.correct, reply = excluded.reply, prompt_sha = excluded.prompt_sha,
    shared = excluded.shared
-- An unusable answer does not displace a usable one to the same prompt.
WHERE excluded.correct IS NOT NULL OR excluded.prompt_sha IS NOT verdict.prompt_sha
    OR verdict.correct IS NULL;

-- name: judge_identity
SELECT identity FROM judge WHERE id = :judge;

-- name: majority_changes
-- The verdicts of a panel's majority that are not what is stored as such. Votes on another reading of the
-- reply (another prompt) are no votes on this one: of two readings at most one can have more than half of all
-- judges behind it, and that one is taken.
SELECT voted.sample_id, voted.correct, voted.reply, voted.prompt_sha
FROM (
    SELECT sample_id, prompt_sha, votes AS reply,
        CASE WHEN 2 * ayes > :size THEN 1 WHEN 2 * noes > :size THEN 0 END AS correct,
        max(max(ayes, noes))
    FROM (
        SELECT sample_id, prompt_sha, sum(correct = 1) AS ayes, sum(correct = 0) AS noes,
            group_concat(name || ': ' || coalesce(correct, 'no verdict'), '; ') AS votes
        FROM (
            SELECT verdict.sample_id, verdict.prompt_sha, verdict.correct, judge.name
            FROM verdict JOIN judge ON judge.id = verdict.judge_id
            WHERE verdict.run_id = :run AND judge.identity IN (SELECT value FROM json_each(:panel))
            ORDER BY verdict.sample_id, verdict.judge_id
        )
        GROUP BY sample_id, prompt_sha
    )
    -- SQLite takes the other columns from the row that has the maximum.
    GROUP BY sample_id
) AS voted
    LEFT JOIN verdict ON verdict.run_id = :run AND verdict.sample_id = voted.sample_id
        AND verdict.judge_id = :judge
WHERE verdict.sample_id IS NULL
    OR (verdict.correct, verdict.reply, verdict.prompt_sha)
        IS NOT (voted.correct, voted.reply, voted.prompt_sha);

-- name: put_derived
INSERT INTO verdict (run_id, sample_id, judge_id, correct, reply, prompt_sha, shared)
SELECT :run, changed.sample_id, :judge, changed.correct, changed.reply, changed.prompt_sha, 0
FROM (/* verdicts */) AS changed WHERE true
ON CONFLICT (run_id, sample_id, judge_id) DO UPDATE
SET correct = excluded.correct, reply = excluded.reply, prompt_sha = excluded.prompt_sha;

-- ---------------------------------------------------------------- counts and totals

-- name: counts
SELECT count(*) AS selected,
    count(replied) AS completed,
    coalesce(sum(replied IS NULL AND EXISTS (
        SELECT 1 FROM call
        WHERE call.run_id = :run AND call.sample_id = row.sample_id
            AND call.final = 1 AND call.ok = 0 AND call.judge_id IS NULL)), 0) AS failed,
    coalesce(sum(verdict.correct IS NOT NULL), 0) AS judged,
    coalesce(sum(verdict.sample_id IS NOT NULL AND verdict.correct IS NULL), 0) AS unjudged,
    coalesce(sum(score.status IN ('scored', 'ungraded')), 0) AS scored,
    coalesce(sum(score.status = 'ungraded'), 0) AS ungraded,
    coalesce(sum(score.status IN ('scored', 'ungraded') AND verdict.correct IS NOT NULL), 0) AS by_verdict,
    coalesce(sum(replied IS NOT NULL AND verdict.correct IS NULL
        AND (score.status IS NULL OR score.status NOT IN ('scored', 'ungraded'))), 0) AS to_judge
FROM (
    SELECT selection.sample_id, call.sample_id AS replied
    FROM selection LEFT JOIN call INDEXED BY one_reply ON call.run_id = :run
        AND call.sample_id = selection.sample_id AND call.ok = 1 AND call.judge_id IS NULL
    WHERE selection.run_id = :run
) AS row
    LEFT JOIN verdict ON verdict.run_id = :run AND verdict.sample_id = row.sample_id
        AND verdict.judge_id = (SELECT judge_id FROM run WHERE id = :run)
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = row.sample_id;

-- name: totals
SELECT judge_id, count(*), sum(ok), sum(attempt > 1), sum(kind = 'rate_limit'),
    coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0), coalesce(sum(reasoning_tokens), 0),
    coalesce(sum(cached_tokens), 0), coalesce(sum(cache_write_tokens), 0),
    sum(ok = 1 AND coalesce(usage_reported, 0) = 0),
    coalesce(sum(cost_usd), 0.0), sum(cost_usd IS NULL), sum(total_s),
    coalesce(sum(iif(cost_usd IS NULL AND usage_reported, input_tokens, 0)), 0),
    coalesce(sum(iif(cost_usd IS NULL AND usage_reported, output_tokens, 0)), 0),
    sum(cost_usd IS NULL AND coalesce(usage_reported, 0) = 0),
    coalesce(max(iif(usage_reported, input_tokens, 0)), 0),
    min(started_at), max(started_at + total_s)
FROM call WHERE run_id = :run GROUP BY judge_id;

-- name: failures
SELECT kind, count(*) FROM call WHERE run_id = :run AND ok = 0 AND judge_id IS NULL
GROUP BY kind ORDER BY count(*) DESC, kind;

-- name: shared_verdicts
-- With what a reply to a prompt cost on average that was bought of the same judge, in any run.
SELECT judge.name, shared.n, (
    SELECT iif(count(*) = count(cost_usd), sum(cost_usd) / count(DISTINCT prompt_sha), NULL)
    FROM call INDEXED BY judge_reply
    WHERE judge_id = shared.judge_id AND ok = 1 AND judge_id IS NOT NULL)
FROM (
    SELECT judge_id, count(*) AS n FROM verdict
    WHERE run_id = :run AND shared = 1 AND correct IS NOT NULL GROUP BY judge_id
) AS shared JOIN judge ON judge.id = shared.judge_id
ORDER BY judge.id;

-- ---------------------------------------------------------------- scores

-- name: score_page
SELECT selection.sample_id, position, row_id, family, route, question, sample.answer, options, images,
    strata, fields, call.text, call.kind, call.words, call.reasoning, call.model, call.request_id,
    call.input_tokens, call.output_tokens, call.reasoning_tokens, call.cached_tokens,
    call.cache_write_tokens, call.usage_reported, call.image_scale,
    verdict.sample_id, verdict.correct, verdict.reply, verdict.prompt_sha, judge.name
FROM selection
    JOIN call INDEXED BY one_reply ON call.run_id = :run AND call.sample_id = selection.sample_id
        AND call.ok = 1 AND call.judge_id IS NULL
    JOIN sample ON sample.id = selection.sample_id
    LEFT JOIN verdict ON verdict.run_id = :run AND verdict.sample_id = selection.sample_id
        AND verdict.judge_id = :judge
    LEFT JOIN judge ON judge.id = verdict.judge_id
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run AND selection.sample_id > :after
    AND (NOT :stale OR score.sample_id IS NULL OR score.judge_id IS NOT :judge
        OR score.verdict IS NOT verdict.correct OR score.prompt_sha IS NOT verdict.prompt_sha)
ORDER BY selection.sample_id LIMIT :n;

-- name: scores_stale
SELECT EXISTS (
    SELECT 1 FROM selection
        JOIN call INDEXED BY one_reply ON call.run_id = :run AND call.sample_id = selection.sample_id
            AND call.ok = 1 AND call.judge_id IS NULL
        LEFT JOIN verdict ON verdict.run_id = :run AND verdict.sample_id = selection.sample_id
            AND verdict.judge_id = :judge
        LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
    WHERE selection.run_id = :run
        AND (score.sample_id IS NULL OR score.judge_id IS NOT :judge
            OR score.verdict IS NOT verdict.correct OR score.prompt_sha IS NOT verdict.prompt_sha));

-- name: new_scores
CREATE TEMP TABLE new_score AS SELECT * FROM score WHERE 0;

-- name: drop_new_scores
DROP TABLE temp.new_score;

-- name: put_new_score
INSERT INTO temp.new_score (run_id, sample_id, judge_id, verdict, prompt_sha, answer, how, status, correct,
    tp, fp, fn, detail)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: publish_scores
INSERT OR REPLACE INTO score (run_id, sample_id, judge_id, verdict, prompt_sha, answer, how, status, correct,
    tp, fp, fn, detail)
SELECT run_id, sample_id, judge_id, verdict, prompt_sha, answer, how, status, correct, tp, fp, fn, detail
FROM temp.new_score;

-- name: changed_scores
-- Scores that are about to be replaced by others, with the cause. Where nobody's verdict had been there yet
-- and the answer is the same, the row had no score before, and its first one is no change.
CREATE TEMP VIEW changed_score AS
SELECT run_id, sample_id, cause, answer, how, status, correct, tp, fp, fn
FROM (
    SELECT old.*, iif(
        old.answer = new.answer AND old.how = new.how
            AND (old.judge_id, old.verdict, old.prompt_sha)
                IS NOT (new.judge_id, new.verdict, new.prompt_sha),
        'verdict', 'reading') AS cause
    FROM temp.new_score AS new
        JOIN main.score AS old ON old.run_id = new.run_id AND old.sample_id = new.sample_id
    WHERE (old.answer, old.how, old.status, old.correct, old.tp, old.fp, old.fn)
        IS NOT (new.answer, new.how, new.status, new.correct, new.tp, new.fp, new.fn)
)
WHERE cause = 'reading' OR status <> 'unjudged';

-- name: drop_changed_scores
DROP VIEW temp.changed_score;

-- name: note_rescore
INSERT INTO rescore (run_id, at, package_version)
SELECT :run, :now, :version WHERE EXISTS (SELECT 1 FROM temp.changed_score);

-- name: keep_changed_scores
INSERT INTO score_change (rescore_id, sample_id, cause, answer, how, status, correct, tp, fp, fn)
SELECT :rescore, sample_id, cause, answer, how, status, correct, tp, fp, fn FROM temp.changed_score;

-- name: last_rescore
SELECT id, at, package_version FROM rescore WHERE run_id = :run ORDER BY id DESC LIMIT 1;

-- name: score_changes
SELECT change.sample_id, row_id, change.cause, change.answer, change.how, change.status, change.correct, change.tp,
    change.fp, change.fn, score.status, score.correct
FROM rescore
    JOIN score_change AS change ON change.rescore_id = rescore.id
    JOIN sample ON sample.id = change.sample_id
    JOIN score ON score.run_id = rescore.run_id AND score.sample_id = change.sample_id
WHERE rescore.id = :rescore AND change.sample_id > :after
ORDER BY change.sample_id LIMIT :n;

-- name: note_scoring
UPDATE run SET scored_at = :now, scored_version = :version WHERE id = :run;

-- ---------------------------------------------------------------- rows for reports
-- Three reads a page, over the same span of keys: the rows, their calls, their verdicts.

-- name: outcome_page
SELECT selection.sample_id, family, strata, call.kind, call.model, call.image_scale,
    call.total_s, call.first_token_s, iif(call.usage_reported, call.input_tokens, NULL),
    iif(call.usage_reported, call.output_tokens, NULL), iif(call.usage_reported, call.reasoning_tokens, NULL),
    score.status, score.correct, score.tp, score.fp, score.fn, score.how, score.answer, score.detail,
    CASE WHEN call.sample_id IS NULL THEN (
        SELECT last.kind FROM call AS last
        WHERE last.run_id = :run AND last.sample_id = selection.sample_id AND last.judge_id IS NULL
            AND EXISTS (
                SELECT 1 FROM call AS given_up
                WHERE given_up.run_id = :run AND given_up.sample_id = selection.sample_id
                    AND given_up.final = 1 AND given_up.judge_id IS NULL)
        ORDER BY last.id DESC LIMIT 1
    ) END AS failure
FROM selection
    JOIN sample ON sample.id = selection.sample_id
    LEFT JOIN call INDEXED BY one_reply ON call.run_id = :run AND call.sample_id = selection.sample_id
        AND call.ok = 1 AND call.judge_id IS NULL
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run AND selection.sample_id > :after
ORDER BY selection.sample_id LIMIT :n;

-- name: row_page
SELECT selection.sample_id, position, row_id, family, route, question, sample.answer, options, images,
    strata, fields, score.answer, score.how, score.status, score.correct, score.tp, score.fp, score.fn,
    score.detail
FROM selection
    JOIN sample ON sample.id = selection.sample_id
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run AND selection.sample_id > :after
ORDER BY selection.sample_id LIMIT :n;

-- name: key_of_row
SELECT sample.id FROM run JOIN sample ON sample.dataset_id = run.dataset_id AND sample.row_id = :row
WHERE run.id = :run;

-- name: calls_of_span
SELECT call.sample_id, call.session_id, call.final, judge.name, call.image_scale, call.image_sha256,
    call.image_note, attempt, started_at, total_s, first_token_s, ok, kind, words, status, retry_after_s,
    request_id, model, input_tokens, output_tokens, reasoning_tokens, cached_tokens, cache_write_tokens,
    usage_reported, cost_usd, text, reasoning
FROM call LEFT JOIN judge ON judge.id = call.judge_id
WHERE call.run_id = :run AND call.sample_id BETWEEN :first AND :last
ORDER BY call.sample_id, call.id;

-- name: verdicts_of_span
SELECT verdict.sample_id, judge.name, verdict.correct, verdict.reply
FROM verdict JOIN judge ON judge.id = verdict.judge_id
WHERE verdict.run_id = :run AND verdict.sample_id BETWEEN :first AND :last
ORDER BY verdict.sample_id, verdict.judge_id;
