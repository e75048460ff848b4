-- Named statements for looking through the rows of a run; sql.py cuts the file at the lines that begin with
-- `-- name:`. Temporary tables in memory of the reading connection stand between the store and a filter:
-- `standing` (how each row of a run came out) and `traits` (its strata) make `listing` (the browsed run's rows
-- with all that is filtered by); `texts` has what is searched beside the replies, which are left in the store;
-- `chosen` has the keys of the rows that a filter leaves, a slot a filter. The store itself is only read.

-- name: new_standing
CREATE TEMP TABLE standing (
    run_id INTEGER NOT NULL,
    key INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    how TEXT,
    finish TEXT,
    disputed INTEGER NOT NULL,
    odd INTEGER NOT NULL,
    PRIMARY KEY (run_id, key)
) WITHOUT ROWID;

-- name: new_listing
CREATE TEMP TABLE listing (
    key INTEGER PRIMARY KEY,
    family TEXT NOT NULL,
    outcome TEXT NOT NULL,
    how TEXT,
    finish TEXT,
    disputed INTEGER NOT NULL,      -- 1: two judges gave different verdicts
    traits TEXT NOT NULL,           -- numbers of its strata, rising: <3><17>
    odd INTEGER NOT NULL,           -- 1: a text that is searched holds NUL, at which LIKE stops
    beside_key INTEGER,             -- the same row in the run beside this one
    beside_outcome TEXT,
    flip TEXT,
    fate INTEGER NOT NULL           -- outcome and flip as one number: counted in half the time of texts
);

-- name: new_traits
CREATE TEMP TABLE traits (key INTEGER PRIMARY KEY, traits TEXT NOT NULL);

-- name: new_texts
CREATE TEMP TABLE texts (key INTEGER PRIMARY KEY, text TEXT NOT NULL);

-- name: new_chosen
CREATE TEMP TABLE chosen (slot INTEGER NOT NULL, key INTEGER NOT NULL, PRIMARY KEY (slot, key)) WITHOUT ROWID;

-- name: fill_standing
INSERT INTO temp.standing (run_id, key, outcome, how, finish, disputed, odd)
SELECT selection.run_id, selection.sample_id,
    CASE
        WHEN score.status = 'scored' THEN iif(score.correct, 'right', 'wrong')
        WHEN score.status IS NOT NULL THEN score.status
        WHEN reply.id IS NOT NULL THEN 'unjudged'
        WHEN EXISTS (
            SELECT 1 FROM call
            WHERE call.run_id = :run AND call.sample_id = selection.sample_id
                AND call.final = 1 AND call.judge_id IS NULL) THEN 'failed'
        ELSE 'pending'
    END,
    score.how, reply.kind,
    coalesce((
        SELECT min(verdict.correct) <> max(verdict.correct) FROM verdict
        WHERE verdict.run_id = :run AND verdict.sample_id = selection.sample_id), 0),
    instr(coalesce(reply.text, ''), char(0)) > 0
FROM selection
    LEFT JOIN call AS reply INDEXED BY one_reply ON reply.run_id = :run
        AND reply.sample_id = selection.sample_id AND reply.ok = 1 AND reply.judge_id IS NULL
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run
ORDER BY selection.sample_id;

-- name: fill_listing
-- Rows of another dataset are the same rows where they have the same id.
INSERT INTO temp.listing (key, family, outcome, how, finish, disputed, traits, odd, beside_key, beside_outcome,
    flip, fate)
SELECT *,
    instr('right wrong unjudged ungraded failed pending', outcome) * 100
        + coalesce(instr('gained lost both right both wrong', flip), 0)
FROM (
    SELECT here.key, sample.family, here.outcome, here.how, here.finish, here.disputed, traits.traits,
        here.odd OR instr(sample.question, char(0)) OR instr(sample.answer, char(0))
            OR instr(sample.row_id, char(0)),
        beside.key, beside.outcome,
        CASE here.outcome || ' ' || beside.outcome
            WHEN 'wrong right' THEN 'gained'
            WHEN 'right wrong' THEN 'lost'
            WHEN 'right right' THEN 'both right'
            WHEN 'wrong wrong' THEN 'both wrong'
        END AS flip
    FROM temp.standing AS here
        JOIN temp.traits ON traits.key = here.key
        JOIN sample ON sample.id = here.key
        LEFT JOIN temp.standing AS beside ON beside.run_id = :beside AND beside.key = CASE
            WHEN sample.dataset_id = :beside_dataset THEN sample.id
            ELSE (
                SELECT twin.id FROM sample AS twin
                WHERE twin.dataset_id = :beside_dataset AND twin.row_id = sample.row_id)
        END
    WHERE here.run_id = :run
    ORDER BY here.key
);

-- name: fill_texts
INSERT INTO temp.texts (key, text)
SELECT sample.id, row_id || char(10) || question || char(10) || answer
FROM temp.listing JOIN sample ON sample.id = listing.key
ORDER BY listing.key;

-- name: drop_standing
DROP TABLE temp.standing;

-- name: drop_traits
DROP TABLE temp.traits;

-- name: selected_strata
SELECT sample_id, strata FROM selection JOIN sample ON sample.id = sample_id
WHERE run_id = :run ORDER BY sample_id;

-- name: put_traits
INSERT INTO temp.traits (key, traits) VALUES (?, ?);

-- name: listed_values
SELECT :column,
    CASE :column WHEN 'family' THEN family WHEN 'how' THEN how WHEN 'finish' THEN finish END AS value, count(*)
FROM temp.listing GROUP BY value ORDER BY count(*) DESC, value;

-- name: listed_marks
SELECT coalesce(sum(disputed), 0), coalesce(sum(odd), 0) FROM temp.listing;

-- name: choose_all
INSERT INTO temp.chosen (slot, key) SELECT :slot, key FROM temp.listing ORDER BY key;

-- name: choose_by_kind
INSERT INTO temp.chosen (slot, key)
SELECT :slot, key FROM temp.listing
WHERE (:family IS NULL OR family = :family)
    AND (:how IS NULL OR how = :how)
    AND (:finish IS NULL OR finish = :finish)
    AND (:disputed IS NULL OR disputed = :disputed)
    AND (:traits IS NULL OR traits GLOB :traits)
ORDER BY key;

-- name: choose_by_text
-- LIKE knows A-Z in both cases.
INSERT INTO temp.chosen (slot, key)
SELECT :slot, chosen.key
FROM temp.chosen
    JOIN temp.texts ON texts.key = chosen.key
    LEFT JOIN call AS reply INDEXED BY one_reply ON reply.run_id = :run AND reply.sample_id = chosen.key
        AND reply.ok = 1 AND reply.judge_id IS NULL
WHERE chosen.slot = :from AND (texts.text LIKE :text ESCAPE '\' OR reply.text LIKE :text ESCAPE '\')
ORDER BY chosen.key;

-- name: choose_odd_by_text
-- The same for the few rows in which LIKE would see the beginning only.
INSERT OR IGNORE INTO temp.chosen (slot, key)
SELECT :slot, chosen.key
FROM temp.chosen
    JOIN temp.listing ON listing.key = chosen.key AND listing.odd
    JOIN sample ON sample.id = chosen.key
    LEFT JOIN call AS reply INDEXED BY one_reply ON reply.run_id = :run AND reply.sample_id = chosen.key
        AND reply.ok = 1 AND reply.judge_id IS NULL
WHERE chosen.slot = :from AND (
    instr(lower(question), lower(:plain)) OR instr(lower(answer), lower(:plain))
    OR instr(lower(row_id), lower(:plain)) OR instr(lower(coalesce(reply.text, '')), lower(:plain)))
ORDER BY chosen.key;

-- name: choose_by_outcome
INSERT INTO temp.chosen (slot, key)
SELECT :slot, chosen.key FROM temp.chosen JOIN temp.listing ON listing.key = chosen.key
WHERE slot = :from
    AND (:outcome IS NULL OR outcome = :outcome)
    AND (:flip IS NULL OR flip = :flip OR (:flip = 'flipped' AND flip IN ('gained', 'lost')))
ORDER BY chosen.key;

-- name: forget_chosen
DELETE FROM temp.chosen WHERE slot = :slot;

-- name: tally
SELECT outcome, flip, count(*) FROM temp.chosen JOIN temp.listing ON listing.key = chosen.key
WHERE slot = :slot GROUP BY fate;

-- name: place_of_row
-- Where a row stands among the chosen ones, and the nearest on both sides of it.
SELECT
    EXISTS (SELECT 1 FROM temp.chosen WHERE slot = :slot AND key = :key),
    (SELECT count(*) FROM temp.chosen WHERE slot = :slot AND key < :key),
    (SELECT max(key) FROM temp.chosen WHERE slot = :slot AND key < :key),
    (SELECT min(key) FROM temp.chosen WHERE slot = :slot AND key > :key);

-- name: key_at
SELECT key FROM temp.chosen WHERE slot = :slot ORDER BY key LIMIT 1 OFFSET :number;

-- name: keys_after
SELECT key FROM temp.chosen WHERE slot = :slot AND key > :key ORDER BY key LIMIT :n;

-- name: keys_before
SELECT key FROM temp.chosen WHERE slot = :slot AND key < :key ORDER BY key DESC LIMIT :n;

-- name: listed_rows
SELECT listing.key, position, row_id, listing.family, question, sample.answer, images, outcome, listing.how,
    finish, disputed, flip, score.answer, beside_outcome, beside.answer
FROM json_each(:keys) AS wanted
    JOIN temp.listing ON listing.key = wanted.value
    JOIN sample ON sample.id = listing.key
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = listing.key
    LEFT JOIN score AS beside ON beside.run_id = :beside AND beside.sample_id = beside_key
ORDER BY listing.key;

-- name: beside_key
SELECT beside_key FROM temp.listing WHERE key = :key;

-- name: row_verdicts
SELECT judge.name, judge.identity, verdict.correct, verdict.reply, hex(verdict.prompt_sha), verdict.shared
FROM verdict JOIN judge ON judge.id = verdict.judge_id
WHERE verdict.run_id = :run AND verdict.sample_id = :key
ORDER BY verdict.judge_id;
