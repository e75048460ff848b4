-- Named statements for what compares runs; sql.py cuts the file at the lines that begin with `-- name:`.

-- name: result_page
-- Each selected row with its score, and neither reply nor answer: what a comparison counts.
SELECT selection.sample_id, family, strata, status, correct, tp, fp, fn, detail, row_id,
    CASE WHEN :columns THEN fields END
FROM selection
    JOIN sample ON sample.id = selection.sample_id
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
WHERE selection.run_id = :run AND selection.sample_id > :after
ORDER BY selection.sample_id LIMIT :n;

-- name: flip_page
-- Rows that one of two runs has right and the other wrong, among those with a score in all of :runs.
SELECT one.sample_id, row_id, family, sample.answer, one.correct, one.answer, other.answer
FROM score AS one
    JOIN score AS other ON other.run_id = :second AND other.sample_id = one.sample_id
    JOIN sample ON sample.id = one.sample_id
WHERE one.run_id = :first AND one.sample_id > :after
    AND one.status = 'scored' AND other.status = 'scored' AND one.correct <> other.correct
    AND NOT EXISTS (
        SELECT 1 FROM json_each(:runs) AS run
            LEFT JOIN score ON score.run_id = run.value AND score.sample_id = one.sample_id
        WHERE score.status IS NOT 'scored')
ORDER BY one.sample_id LIMIT :n;

-- name: joint_counts
-- How many rows with a score in both runs came out in each of the four ways.
SELECT one.correct, other.correct, count(*)
FROM score AS one
    JOIN score AS other ON other.run_id = :second AND other.sample_id = one.sample_id
WHERE one.run_id = :first AND one.status = 'scored' AND other.status = 'scored'
GROUP BY 1, 2;
