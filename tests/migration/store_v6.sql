-- A store as version 6 made it, with one run in it. Frozen: a store of this version must open for ever.
CREATE TABLE migration (
    name TEXT PRIMARY KEY,
    applied_at REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE dataset (
    id INTEGER PRIMARY KEY,
    benchmark TEXT NOT NULL,
    source TEXT NOT NULL,
    stamp TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    rows INTEGER NOT NULL,
    first_key INTEGER NOT NULL,
    created_at REAL NOT NULL,
    UNIQUE (benchmark, fingerprint)
);
CREATE TABLE sample (
    id INTEGER PRIMARY KEY,
    dataset_id INTEGER NOT NULL REFERENCES dataset (id),
    position INTEGER NOT NULL,
    row_id TEXT NOT NULL,
    family TEXT NOT NULL,
    route TEXT NOT NULL,
    question TEXT NOT NULL,
    answer TEXT NOT NULL,
    options TEXT NOT NULL,
    images TEXT NOT NULL,
    strata TEXT NOT NULL,
    fields TEXT NOT NULL,
    UNIQUE (dataset_id, row_id)
);
CREATE TABLE judge (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL UNIQUE,
    created_at REAL NOT NULL
);
CREATE TABLE run (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    benchmark TEXT NOT NULL,
    dataset_id INTEGER NOT NULL REFERENCES dataset (id),
    model TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    host TEXT NOT NULL,
    identity TEXT NOT NULL,
    config TEXT NOT NULL,
    judge_id INTEGER REFERENCES judge (id),
    package_version TEXT NOT NULL,
    created_at REAL NOT NULL,
    scored_at REAL,
    scored_version TEXT,
    lease_host TEXT,
    lease_boot TEXT,
    lease_pid INTEGER,
    lease_process TEXT,
    lease_since REAL,
    lease_beat REAL
);
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    kind TEXT NOT NULL,
    started_at REAL NOT NULL,
    ended_at REAL,
    ended TEXT,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    package_version TEXT NOT NULL,
    config TEXT NOT NULL
);
CREATE INDEX session_of_run ON session (run_id);
CREATE TABLE selection (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    PRIMARY KEY (run_id, sample_id)
) WITHOUT ROWID;
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    session_id INTEGER NOT NULL REFERENCES session (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER REFERENCES judge (id),
    attempt INTEGER NOT NULL,
    final INTEGER NOT NULL,
    started_at REAL NOT NULL,
    total_s REAL NOT NULL,
    first_token_s REAL,
    ok INTEGER NOT NULL,
    kind TEXT NOT NULL,
    words TEXT NOT NULL,
    status INTEGER,
    retry_after_s REAL,
    request_id TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    cached_tokens INTEGER,
    cache_write_tokens INTEGER,
    usage_reported INTEGER,
    cost_usd REAL,
    text TEXT,
    reasoning TEXT,
    prompt_sha BLOB,
    image_scale REAL NOT NULL,
    image_sha256 BLOB,
    image_note TEXT NOT NULL
);
CREATE UNIQUE INDEX one_reply ON call (run_id, sample_id) WHERE ok = 1 AND judge_id IS NULL;
CREATE INDEX call_of_sample ON call (run_id, sample_id);
CREATE INDEX judge_reply ON call (judge_id, prompt_sha) WHERE ok = 1 AND judge_id IS NOT NULL;
CREATE TABLE verdict (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER NOT NULL REFERENCES judge (id),
    correct INTEGER,
    reply TEXT NOT NULL,
    prompt_sha BLOB,
    shared INTEGER NOT NULL,
    PRIMARY KEY (run_id, sample_id, judge_id)
) WITHOUT ROWID;
CREATE TABLE score (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER REFERENCES judge (id),
    verdict INTEGER,
    prompt_sha BLOB,
    answer TEXT NOT NULL,
    how TEXT NOT NULL,
    status TEXT NOT NULL,
    correct INTEGER,
    tp INTEGER NOT NULL,
    fp INTEGER NOT NULL,
    fn INTEGER NOT NULL,
    detail TEXT NOT NULL,
    PRIMARY KEY (run_id, sample_id)
) WITHOUT ROWID;

CREATE TABLE rescore (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    at REAL NOT NULL,
    package_version TEXT NOT NULL
);
CREATE INDEX rescore_of_run ON rescore (run_id);
CREATE TABLE score_change (
    rescore_id INTEGER NOT NULL REFERENCES rescore (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    cause TEXT NOT NULL,
    answer TEXT NOT NULL,
    how TEXT NOT NULL,
    status TEXT NOT NULL,
    correct INTEGER,
    tp INTEGER NOT NULL,
    fp INTEGER NOT NULL,
    fn INTEGER NOT NULL,
    PRIMARY KEY (rescore_id, sample_id)
) WITHOUT ROWID;
CREATE TABLE control (
    run_id INTEGER PRIMARY KEY REFERENCES run (id),
    asked INTEGER NOT NULL,
    asked_at REAL NOT NULL,
    seen INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    limits TEXT NOT NULL
);
CREATE TABLE bench (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,
    host TEXT NOT NULL,
    package_version TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    ended TEXT,
    result TEXT
);
CREATE TABLE bench_stage (
    id INTEGER PRIMARY KEY,
    bench_id INTEGER NOT NULL REFERENCES bench (id),
    number INTEGER NOT NULL,
    part INTEGER NOT NULL,
    role TEXT NOT NULL,
    target TEXT NOT NULL,
    plan TEXT NOT NULL,
    began_at REAL NOT NULL,
    begin_s REAL NOT NULL,
    end_s REAL NOT NULL,
    ended TEXT NOT NULL,
    drained_s REAL NOT NULL,
    gaps TEXT NOT NULL,
    lags TEXT NOT NULL,
    ticks TEXT NOT NULL,
    UNIQUE (bench_id, number)
);
CREATE TABLE bench_request (
    stage_id INTEGER NOT NULL REFERENCES bench_stage (id),
    number INTEGER NOT NULL,
    intended_s REAL NOT NULL,
    delay_s REAL NOT NULL,
    connect_s REAL,
    sent_s REAL,
    upload_s REAL,
    first_byte_s REAL,
    first_thought_s REAL,
    first_output_s REAL,
    last_token_s REAL,
    total_s REAL NOT NULL,
    phase TEXT NOT NULL,
    message TEXT NOT NULL,
    status INTEGER,
    request_id TEXT NOT NULL,
    finish TEXT NOT NULL,
    events INTEGER NOT NULL,
    longest_gap_s REAL NOT NULL,
    in_one_piece INTEGER NOT NULL,
    bytes_up INTEGER NOT NULL,
    bytes_down INTEGER NOT NULL,
    images INTEGER NOT NULL,
    pixels INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL,
    estimated INTEGER NOT NULL,
    cost_usd REAL,
    in_flight INTEGER NOT NULL,
    row TEXT NOT NULL,
    text TEXT,
    correct INTEGER,
    PRIMARY KEY (stage_id, number)
) WITHOUT ROWID;

CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    settings TEXT NOT NULL,
    failed_only INTEGER NOT NULL,
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    message TEXT NOT NULL,
    exit_code INTEGER
);
CREATE UNIQUE INDEX job_open ON job (run) WHERE state IN ('queued', 'running', 'paused');
CREATE TABLE service (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process TEXT NOT NULL,
    since REAL NOT NULL,
    beat REAL NOT NULL
);
CREATE TABLE batch (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    session_id INTEGER NOT NULL REFERENCES session (id),
    judge_id INTEGER REFERENCES judge (id),
    marker TEXT NOT NULL UNIQUE,
    url TEXT NOT NULL,
    state TEXT NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    worst_usd REAL,
    created_at REAL NOT NULL,
    sent_at REAL,
    ended_at REAL,
    remote_id TEXT NOT NULL,
    status TEXT NOT NULL,
    finished INTEGER NOT NULL,
    words TEXT NOT NULL
);
CREATE INDEX batch_of_run ON batch (run_id);
CREATE TABLE batch_item (
    batch_id INTEGER NOT NULL REFERENCES batch (id),
    number INTEGER NOT NULL,
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    attempt INTEGER NOT NULL,
    prompt_sha TEXT NOT NULL,
    raw_input INTEGER NOT NULL,
    image_scale REAL NOT NULL,
    image_sha256 TEXT NOT NULL,
    image_note TEXT NOT NULL,
    fate TEXT,
    PRIMARY KEY (batch_id, number)
) WITHOUT ROWID;
CREATE INDEX open_batch_item ON batch_item (sample_id) WHERE fate IS NULL;
PRAGMA application_id = 0x4D4D4255;
PRAGMA user_version = 6;
INSERT INTO migration VALUES ('m001_first', 1790000000.5), ('m002_score_changes', 1790000000.5),
    ('m003_control', 1790000000.5), ('m004_bench', 1790000000.5),
    ('m005_jobs', 1790000000.5),
    ('m006_batches', 1790000000.5);

INSERT INTO dataset VALUES (1, 'mmbu-public', 'mmbu/mmbu-public', 'stamp', 'fingerprint', 3, 1, 1790000001.5);
INSERT INTO sample VALUES
    (1, 1, 0, 'a', 'counting', 'single_answer', 'How many?', '7', '["3","7"]', '["a.png"]',
        '{"task":["counting","cells"]}', '{"unique_id":"a"}'),
    (2, 1, 1, 'b', 'object detection', 'object_detection', 'Where?', '[1,2,3,4]', '[]', '["b.png"]',
        '{"task":["object detection"]}', '{"unique_id":"b"}'),
    (3, 1, 2, 'c', 'counting', 'single_answer', 'How many?', '3', '["3","7"]', '["c.png"]', '{}', '{}');
INSERT INTO judge VALUES (1, 'claude-sonnet-5', '{"model":"claude-sonnet-5"}', 1790000002.5);
INSERT INTO run VALUES (1, 'night', 'mmbu-public', 1, 'test-vlm', 'openai', 'api.example.org',
    '{"model":"test-vlm"}', '{"limit":null}', 1, '0.1.0', 1790000003.5, 1790000100.5, '0.1.0',
    NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO session VALUES
    (1, 1, 'run', 1790000004.5, 1790000090.5, 'done', 'workstation', 42, '0.1.0', '{"rpm":60}');
INSERT INTO selection VALUES (1, 1), (1, 2), (1, 3);
INSERT INTO call VALUES
    (1, 1, 1, 1, NULL, 1, 0, 1790000005.5, 1.5, NULL, 0, 'rate_limit', 'slow down', 429, 2.5, 'req-1', '',
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1.0, NULL, ''),
    (2, 1, 1, 1, NULL, 2, 1, 1790000009.5, 2.5, 0.25, 1, 'stop', 'end_turn', NULL, NULL, 'req-2', 'test-vlm-1',
        1000, 50, 20, 10, 5, 1, 0.125, '<answer>7</answer>', 'thought', NULL, 0.5, x'abcd', 'scaled'),
    (3, 1, 1, 2, NULL, 1, 1, 1790000006.5, 1.5, NULL, 0, 'bad_request', 'too large', 400, NULL, '', '',
        NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1.0, NULL, ''),
    (4, 1, 1, 1, 1, 1, 1, 1790000013.5, 1.5, NULL, 1, 'stop', 'end_turn', NULL, NULL, 'req-4', 'claude',
        200, 20, 0, 0, 0, 1, 0.0625, 'As listed. [RESULT] 1', '', x'aa', 1.0, NULL, '');
INSERT INTO verdict VALUES (1, 1, 1, 1, 'As listed. [RESULT] 1', x'aa', 0);
INSERT INTO score VALUES (1, 1, 1, 1, x'aa', '7', 'tag', 'scored', 1, 1, 0, 0, '{"reason":"listed"}');
INSERT INTO rescore VALUES (1, 1, 1790000100.5, '0.1.0');
INSERT INTO score_change VALUES (1, 1, 'reading', 'seven', 'untagged', 'scored', 0, 0, 1, 1);
INSERT INTO control VALUES (1, 2, 1790000050.5, 2, 0, '{"":{"rpm":60}}');
INSERT INTO bench VALUES (1, 'test-vlm', '{"seed":0}', 'workstation', '0.1.0', 1790000200.5, 1790000300.5, 'done',
    NULL);
INSERT INTO bench_stage VALUES (1, 1, 0, 0, 'stage', 'test-vlm', '{"load":{"concurrency":4}}', 1790000201.5,
    0.5, 10.5, 'count', 0.25, '[]', '{}', '[]');
INSERT INTO bench_request VALUES (1, 0, 0.5, 0.0, NULL, 0.25, 0.125, 0.5, NULL, 0.75, 1.25, 1.5, 'ok', '', 200,
    'req-9', 'stop', 20, 0.125, 0, 140000, 900, 1, 786432, 1000, 50, 20, 0, 0, 0.125, 4, 'a', NULL, 1);
INSERT INTO job VALUES (1, 'night', 'run', 'running', 3, '{"model":"test-vlm"}', 0, 1790000000.5, 1790000001.5, NULL, '',
    NULL);
INSERT INTO service VALUES (1, 'workstation', 'b', 41, '7', 1790000000.5, 1790000010.5);
INSERT INTO batch VALUES (1, 1, 1, NULL, 'mmbu0123456789abcdef', 'https://api.example.org/v1', 'fetched', 1, 900, 0.5,
    1790000005.5, 1790000006.5, 1790000009.5, 'batch_1', 'completed', 1, '');
INSERT INTO batch_item VALUES (1, 0, 1, 1, '', 1000, 0.5, 'abcd', 'scaled', 'reply');
