-- Named statements from which an estimate learns; sql.py cuts the file at the lines that begin with `-- name:`.

-- name: replies_of_run
SELECT count(*) FROM call WHERE run_id = :run AND ok = 1 AND judge_id IS NULL;

-- name: usages
-- Rows from all over the run: the product scatters them, whatever order the families are in.
SELECT sample.family, call.input_tokens, call.output_tokens, call.cached_tokens, call.cache_write_tokens
FROM call JOIN sample ON sample.id = call.sample_id
WHERE call.run_id = :run AND (call.sample_id * 7919 % 10007) % :step = 0
    AND call.ok = 1 AND call.judge_id IS :judge AND call.usage_reported = 1
LIMIT :n;

-- name: judged_prompts
SELECT sample.row_id, verdict.prompt_sha, verdict.correct FROM verdict JOIN sample ON sample.id = verdict.sample_id
WHERE verdict.run_id = :run AND verdict.judge_id = :judge AND verdict.prompt_sha IS NOT NULL
    AND verdict.correct IS NOT NULL
ORDER BY verdict.sample_id LIMIT :n;
