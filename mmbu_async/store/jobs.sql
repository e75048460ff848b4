-- Named statements of the service's jobs; sql.py cuts the file at the lines that begin with `-- name:`.

-- name: insert_job
INSERT INTO job (run, kind, state, priority, settings, failed_only, created_at, message)
VALUES (:run, :kind, 'queued', :priority, :settings, :failed_only, :now, '');

-- name: jobs
SELECT id, run, kind, state, priority, created_at, started_at, ended_at, message, exit_code, settings, failed_only
FROM job WHERE :job IS NULL OR id = :job ORDER BY id;

-- name: open_job
SELECT id, state FROM job WHERE run = :run AND state IN ('queued', 'running', 'paused');

-- name: next_job
-- The highest priority first, then the oldest.
SELECT id FROM job WHERE state = 'queued' AND id NOT IN (SELECT value FROM json_each(:without))
ORDER BY priority DESC, id LIMIT 1;

-- name: move_job
UPDATE job SET state = :state, message = :message, exit_code = :exit_code, ended_at = :ended_at,
    started_at = coalesce(started_at, :started_at)
WHERE id = :job AND state IN (SELECT value FROM json_each(:from));

-- name: change_job
UPDATE job SET priority = coalesce(:priority, priority), settings = coalesce(:settings, settings)
WHERE id = :job AND state IN ('queued', 'running', 'paused');

-- name: recover_jobs
-- Whoever worked on these is dead: this service has the store now.
UPDATE job SET state = 'queued', message = :message WHERE state = 'running';

-- name: jobs_cost
-- What every call of the runs that were jobs has cost, as far as it is known.
SELECT total(cost_usd) FROM call
WHERE run_id IN (SELECT run.id FROM run WHERE run.name IN (SELECT run FROM job));

-- name: service
SELECT host, boot, pid, process, since, beat FROM service WHERE id = 1;

-- name: take_service
INSERT INTO service (id, host, boot, pid, process, since, beat)
VALUES (1, :host, :boot, :pid, :process, :now, :now)
ON CONFLICT (id) DO UPDATE SET host = :host, boot = :boot, pid = :pid, process = :process,
    since = :now, beat = :now;

-- name: beat_service
UPDATE service SET beat = ? WHERE id = 1 AND host = ? AND boot = ? AND pid = ? AND process = ?;

-- name: leave_service
DELETE FROM service WHERE id = 1 AND host = ? AND boot = ? AND pid = ? AND process = ?;
