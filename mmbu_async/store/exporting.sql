-- Named statements for the long form of a run; sql.py cuts the file at the lines that begin with `-- name:`.

-- name: attributes
-- Names in the strata of the selected rows.
SELECT DISTINCT key
FROM selection JOIN sample ON sample.id = selection.sample_id, json_each(sample.strata)
WHERE selection.run_id = :of AND NOT instr(strata, '\u0000');

-- name: attributes_with_nul
SELECT strata FROM selection JOIN sample ON sample.id = selection.sample_id
WHERE selection.run_id = :of AND instr(strata, '\u0000');

-- name: columns
-- Names in the fields of a dataset's rows.
SELECT DISTINCT key FROM sample, json_each(sample.fields)
WHERE dataset_id = :of AND NOT instr(fields, '\u0000');

-- name: columns_with_nul
SELECT fields FROM sample WHERE dataset_id = :of AND instr(fields, '\u0000');

-- name: long_page
-- Each selected row with its score, and neither reply nor answer.
SELECT selection.sample_id, position, row_id, family, strata,
    score.status, score.correct, score.tp, score.fp, score.fn, score.verdict IS NOT NULL,
    CASE WHEN instr(score.detail, '"cluster"') THEN score.detail END, call.sample_id IS NOT NULL,
    call.sample_id IS NULL AND EXISTS (
        SELECT 1 FROM call AS given_up
        WHERE given_up.run_id = :run AND given_up.sample_id = selection.sample_id
            AND given_up.final = 1 AND given_up.judge_id IS NULL)
FROM selection
    JOIN sample ON sample.id = selection.sample_id
    LEFT JOIN call INDEXED BY one_reply ON call.run_id = :run AND call.sample_id = selection.sample_id
        AND call.ok = 1 AND call.judge_id IS NULL
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run AND selection.sample_id > :after
ORDER BY selection.sample_id LIMIT :n;
