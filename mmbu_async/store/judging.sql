-- How each judge of a run voted.

-- name: row_votes
-- The votes on rows that a judge scores. A vote on another reading of the reply than the score's is none.
-- Where the score has none to go by, since its own judge gave no verdict, every vote counts; where it has one
-- and is unjudged all the same, that verdict was on another reading.
SELECT sample_id, standing,
    CASE WHEN standing = 'judged' THEN (
        SELECT json_group_object(verdict.judge_id, verdict.correct) FROM verdict
        WHERE verdict.run_id = :run AND verdict.sample_id = row.sample_id AND verdict.correct IS NOT NULL
            AND CASE
                WHEN row.prompt_sha IS NULL THEN 1
                WHEN row.status = 'unjudged' AND row.verdict IS NOT NULL
                    THEN verdict.prompt_sha IS NOT row.prompt_sha
                ELSE verdict.prompt_sha IS row.prompt_sha
            END) END AS votes
FROM (
    SELECT selection.sample_id, score.status, score.verdict, score.prompt_sha,
        CASE
            WHEN score.status = 'ungraded' THEN 'ungraded'
            WHEN score.status = 'unjudged' THEN 'judged'
            WHEN score.status = 'scored' AND score.correct = score.verdict THEN 'judged'
            WHEN score.status = 'scored' THEN iif(score.correct, 'right', 'wrong')
            ELSE 'open'
        END AS standing
    FROM selection
        LEFT JOIN score ON score.run_id = :run AND score.sample_id = selection.sample_id
    WHERE selection.run_id = :run AND selection.sample_id > :after
    ORDER BY selection.sample_id LIMIT :n
) AS row;

-- name: votes_of_rows
SELECT voted.sample_id, sample.row_id, sample.family, sample.answer, score.answer, standing, votes
FROM (/* row_votes */) AS voted
    JOIN sample ON sample.id = voted.sample_id
    LEFT JOIN score ON score.run_id = :run AND score.sample_id = voted.sample_id
ORDER BY voted.sample_id;

-- name: vote_patterns
SELECT standing, votes, count(*) FROM (/* row_votes */) GROUP BY standing, votes;
