-- Named statements about batches that went to a provider; sql.py cuts the file at the lines that begin with
-- `-- name:`.

-- name: begin_batch
INSERT INTO batch (run_id, session_id, judge_id, marker, url, state, requests, bytes, worst_usd, created_at,
    remote_id, status, finished, words)
VALUES (?, ?, ?, ?, ?, 'submitting', ?, ?, ?, ?, '', '', 0, '');

-- name: begin_batch_items
INSERT INTO batch_item (batch_id, number, sample_id, attempt, prompt_sha, raw_input, image_scale, image_sha256,
    image_note)
SELECT (SELECT id FROM batch WHERE marker = ?1), json_extract(value, '$[0]'), json_extract(value, '$[1]'),
    json_extract(value, '$[2]'), json_extract(value, '$[3]'), json_extract(value, '$[4]'),
    json_extract(value, '$[5]'), json_extract(value, '$[6]'), json_extract(value, '$[7]')
FROM json_each(?2);

-- name: note_batch_sent
UPDATE batch SET state = 'submitted', remote_id = ?, status = ?, sent_at = ?
WHERE marker = ? AND state = 'submitting';

-- name: note_batch_status
UPDATE batch SET status = ?, finished = ? WHERE marker = ? AND (status <> ? OR finished <> ?);

-- name: close_batch
UPDATE batch SET state = ?, words = ?, ended_at = ? WHERE marker = ?;

-- name: close_batch_items
UPDATE batch_item SET fate = ?2
WHERE batch_id = (SELECT id FROM batch WHERE marker = ?1) AND fate IS NULL
    AND number IN (SELECT value FROM json_each(?3));

-- name: close_other_items
UPDATE batch_item SET fate = ?2
WHERE batch_id = (SELECT id FROM batch WHERE marker = ?1) AND fate IS NULL;

-- name: batches_of_run
SELECT marker, run_id, judge_id, url, state, requests, bytes, worst_usd, created_at, sent_at, ended_at, remote_id,
    status, finished, words
FROM batch WHERE run_id = :run AND (:open = 0 OR state IN ('submitting', 'submitted')) ORDER BY id;

-- name: open_batches_by_run
SELECT run_id, count(*) FROM batch WHERE state IN ('submitting', 'submitted') GROUP BY run_id;

-- name: known_remote_batches
SELECT remote_id FROM batch WHERE url = :url AND remote_id <> '';

-- name: open_batch_items
SELECT number, sample_id, attempt, prompt_sha, raw_input, image_scale, image_sha256, image_note
FROM batch_item WHERE batch_id = (SELECT id FROM batch WHERE marker = :marker) AND fate IS NULL;

-- name: open_batch_shas
SELECT batch_item.prompt_sha FROM batch JOIN batch_item ON batch_item.batch_id = batch.id
WHERE batch.run_id = :run AND batch.judge_id = :judge AND batch.state IN ('submitting', 'submitted')
    AND batch_item.fate IS NULL;

-- name: forget_open_items
UPDATE batch_item SET fate = 'never'
WHERE fate IS NULL AND batch_id IN (
    SELECT id FROM batch WHERE run_id = :run AND state IN ('submitting', 'submitted'));

-- name: forget_open_batches
UPDATE batch SET state = 'lost', words = 'forgotten on request', ended_at = :now
WHERE run_id = :run AND state IN ('submitting', 'submitted');

-- name: judge_numbers
SELECT id, name FROM judge;
