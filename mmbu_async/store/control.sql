-- Named statements by which processes speak to the one that works on a run; sql.py cuts the file at the lines
-- that begin with `-- name:`.

-- name: control
SELECT asked, asked_at, seen, paused, limits FROM control WHERE run_id = :run;

-- name: control_page
-- As one row, also where nobody has asked for anything.
SELECT json_array(asked, asked_at, seen, paused, json(limits)) FROM (
    SELECT asked, asked_at, seen, paused, limits FROM control WHERE run_id = :run
    UNION ALL SELECT 0, 0.0, 0, 0, '{}'
) LIMIT 1;

-- name: begin_control
-- A session begins with the settings of the run: what was asked of an earlier one is in them, or is over.
INSERT INTO control (run_id, asked, asked_at, seen, paused, limits) VALUES (:run, 0, :now, 0, 0, '{}')
ON CONFLICT (run_id) DO UPDATE SET seen = asked, paused = 0, limits = '{}';

-- name: ask
INSERT INTO control (run_id, asked, asked_at, seen, paused, limits) VALUES (:run, 1, :now, 0, :paused, :limits)
ON CONFLICT (run_id) DO UPDATE
SET asked = asked + 1, asked_at = excluded.asked_at, paused = excluded.paused, limits = excluded.limits;

-- name: heed
UPDATE control SET seen = ? WHERE run_id = ? AND seen < ?;

-- name: run_config
SELECT config FROM run WHERE id = :run;
