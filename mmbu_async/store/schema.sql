-- The store as the newest version makes it. Older stores reach the same schema through migrations.py.
-- Times are Unix seconds, durations seconds, money US dollars, texts UTF-8, JSON columns text.

CREATE TABLE migration (
    name TEXT PRIMARY KEY,
    applied_at REAL NOT NULL
) WITHOUT ROWID;

CREATE TABLE dataset (
    id INTEGER PRIMARY KEY,
    benchmark TEXT NOT NULL,
    source TEXT NOT NULL,
    stamp TEXT NOT NULL,                -- cheap mark of the source's bytes: finds the dataset without reading it
    fingerprint TEXT NOT NULL,          -- SHA-256 over the content of all rows
    rows INTEGER NOT NULL,
    first_key INTEGER NOT NULL,         -- sample.id of position 0: id = first_key + position
    created_at REAL NOT NULL,
    UNIQUE (benchmark, fingerprint)
);

CREATE TABLE sample (
    id INTEGER PRIMARY KEY,             -- rises with position inside a dataset, so that order needs no sort
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
    identity TEXT NOT NULL UNIQUE,      -- canonical JSON: another identity is another judge
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
    identity TEXT NOT NULL,             -- what changes answers: must match on resume
    config TEXT NOT NULL,               -- everything the run was started with
    judge_id INTEGER REFERENCES judge (id),
    package_version TEXT NOT NULL,
    created_at REAL NOT NULL,
    scored_at REAL,                     -- when scores were last rewritten, and by which version
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
    ended TEXT,                         -- how it ended; NULL while it lives
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    package_version TEXT NOT NULL,
    config TEXT NOT NULL
);

CREATE INDEX session_of_run ON session (run_id);

-- The rows that a run is about.
CREATE TABLE selection (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    PRIMARY KEY (run_id, sample_id)
) WITHOUT ROWID;

-- One row an exchange with an endpoint (or an image that could not be sent). Never updated.
CREATE TABLE call (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    session_id INTEGER NOT NULL REFERENCES session (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER REFERENCES judge (id),     -- NULL: the model under test
    attempt INTEGER NOT NULL,
    final INTEGER NOT NULL,                     -- 1: no further attempt follows in this session
    started_at REAL NOT NULL,
    total_s REAL NOT NULL,
    first_token_s REAL,
    ok INTEGER NOT NULL,
    kind TEXT NOT NULL,                         -- finish word when ok, kind of failure when not
    words TEXT NOT NULL,                        -- the endpoint's own: finish word, or message of the failure
    status INTEGER,
    retry_after_s REAL,
    request_id TEXT NOT NULL,
    model TEXT NOT NULL,                        -- as the endpoint reported it
    input_tokens INTEGER,
    output_tokens INTEGER,
    reasoning_tokens INTEGER,
    cached_tokens INTEGER,
    cache_write_tokens INTEGER,
    usage_reported INTEGER,                     -- NULL, as the tokens, where nothing was charged
    cost_usd REAL,                              -- NULL: unknown
    text TEXT,
    reasoning TEXT,
    prompt_sha BLOB,                            -- of the filled prompt, for calls of a judge
    image_scale REAL NOT NULL,
    image_sha256 BLOB,
    image_note TEXT NOT NULL
);

-- A late duplicate can not make two rows out of one.
CREATE UNIQUE INDEX one_reply ON call (run_id, sample_id) WHERE ok = 1 AND judge_id IS NULL;
CREATE INDEX call_of_sample ON call (run_id, sample_id);
CREATE INDEX judge_reply ON call (judge_id, prompt_sha) WHERE ok = 1 AND judge_id IS NOT NULL;

-- The last word of each judge on each row; every reply that led to it stays in call.
CREATE TABLE verdict (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER NOT NULL REFERENCES judge (id),
    correct INTEGER,                            -- NULL: no usable verdict
    reply TEXT NOT NULL,
    prompt_sha BLOB,                            -- tells whether the verdict is of the answer as read today
    shared INTEGER NOT NULL,                    -- 1: taken from an identical prompt, not bought
    PRIMARY KEY (run_id, sample_id, judge_id)
) WITHOUT ROWID;

-- Derived from the facts above, rewritten by a re-score.
CREATE TABLE score (
    run_id INTEGER NOT NULL REFERENCES run (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    judge_id INTEGER REFERENCES judge (id),     -- with the next two: what it was computed from
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

-- A re-score after which scores were not what they had been.
CREATE TABLE rescore (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    at REAL NOT NULL,
    package_version TEXT NOT NULL
);

CREATE INDEX rescore_of_run ON rescore (run_id);

-- What a score was before a re-score changed it.
CREATE TABLE score_change (
    rescore_id INTEGER NOT NULL REFERENCES rescore (id),
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    cause TEXT NOT NULL,                        -- reading: by other rules; verdict: by another word of a judge
    answer TEXT NOT NULL,
    how TEXT NOT NULL,
    status TEXT NOT NULL,
    correct INTEGER,
    tp INTEGER NOT NULL,
    fp INTEGER NOT NULL,
    fn INTEGER NOT NULL,
    PRIMARY KEY (rescore_id, sample_id)
) WITHOUT ROWID;

-- What other processes ask of the one that works on a run, which looks here about once a second. What
-- lasts beyond its session stands in run.config as well.
CREATE TABLE control (
    run_id INTEGER PRIMARY KEY REFERENCES run (id),
    asked INTEGER NOT NULL,                     -- rises with each request
    asked_at REAL NOT NULL,
    seen INTEGER NOT NULL,                      -- the newest request that is heeded
    paused INTEGER NOT NULL,                    -- 1: no call is to be started
    limits TEXT NOT NULL                        -- JSON: asked for since the session began, by side
);

-- A measurement of endpoints: `mmbu bench`.
CREATE TABLE bench (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    config TEXT NOT NULL,                       -- JSON: endpoints, work, loads, everything it was started with
    host TEXT NOT NULL,                         -- where the measuring process ran
    package_version TEXT NOT NULL,
    created_at REAL NOT NULL,
    ended_at REAL,
    ended TEXT,                                 -- how it ended; NULL while it lives
    result TEXT                                 -- JSON: what a search found
);

-- One load on one endpoint, or one block of it where two endpoints take turns. Seconds count from its begin.
CREATE TABLE bench_stage (
    id INTEGER PRIMARY KEY,
    bench_id INTEGER NOT NULL REFERENCES bench (id),
    number INTEGER NOT NULL,                    -- order within the bench
    part INTEGER NOT NULL,                      -- blocks of one load on one endpoint have the same
    role TEXT NOT NULL,                         -- preflight, stage, probe (of a search)
    target TEXT NOT NULL,                       -- label of the endpoint
    plan TEXT NOT NULL,                         -- JSON: load, ends, warm-up
    began_at REAL NOT NULL,
    begin_s REAL NOT NULL,
    end_s REAL NOT NULL,
    ended TEXT NOT NULL,
    drained_s REAL NOT NULL,
    gaps TEXT NOT NULL,                         -- JSON: histograms of the times between tokens, by stretch
    lags TEXT NOT NULL,                         -- JSON: histogram of the event loop's lateness
    ticks TEXT NOT NULL,                        -- JSON: in flight, lateness, CPU every quarter of a second
    UNIQUE (bench_id, number)
);

-- Each request exactly once, good or bad. Times count from its actual start.
CREATE TABLE bench_request (
    stage_id INTEGER NOT NULL REFERENCES bench_stage (id),
    number INTEGER NOT NULL,                    -- order of the intended starts
    intended_s REAL NOT NULL,                   -- after the stage's begin
    delay_s REAL NOT NULL,                      -- from the intended to the actual start
    connect_s REAL,
    sent_s REAL,
    upload_s REAL,
    first_byte_s REAL,
    first_thought_s REAL,
    first_output_s REAL,
    last_token_s REAL,
    total_s REAL NOT NULL,
    phase TEXT NOT NULL,                        -- ok, or how far it came
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
    estimated INTEGER NOT NULL,                 -- 1: the tokens are; the endpoint told none
    cost_usd REAL,                              -- NULL: unknown
    in_flight INTEGER NOT NULL,
    row TEXT NOT NULL,                          -- id of the row; '' for synthetic work
    text TEXT,                                  -- the reply, where answers are scored
    correct INTEGER,                            -- NULL: not scored
    PRIMARY KEY (stage_id, number)
) WITHOUT ROWID;

-- What the service was asked to run. By the run's name: a job may wait for a run that is not made yet.
CREATE TABLE job (
    id INTEGER PRIMARY KEY,
    run TEXT NOT NULL,                          -- name
    kind TEXT NOT NULL,                         -- run, resume, rejudge
    state TEXT NOT NULL,
    priority INTEGER NOT NULL,
    settings TEXT NOT NULL,                     -- JSON: as submitted
    failed_only INTEGER NOT NULL,
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    message TEXT NOT NULL,
    exit_code INTEGER
);
CREATE UNIQUE INDEX job_open ON job (run) WHERE state IN ('queued', 'running', 'paused');

-- The one service of this store, with its last sign of life.
CREATE TABLE service (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    host TEXT NOT NULL,
    boot TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process TEXT NOT NULL,
    since REAL NOT NULL,
    beat REAL NOT NULL
);

-- Requests that went, or were about to go, to a provider's batch API together.
CREATE TABLE batch (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES run (id),
    session_id INTEGER NOT NULL REFERENCES session (id),
    judge_id INTEGER REFERENCES judge (id),     -- NULL: of the model under test
    marker TEXT NOT NULL UNIQUE,                -- goes along with it, so that it is found again
    url TEXT NOT NULL,                          -- base address of the provider
    state TEXT NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    worst_usd REAL,                             -- the most that it can cost; NULL: unknown
    created_at REAL NOT NULL,                   -- stored before it is sent
    sent_at REAL,
    ended_at REAL,
    remote_id TEXT NOT NULL,                    -- the provider's name for it; '' while unknown
    status TEXT NOT NULL,                       -- the provider's own word
    finished INTEGER NOT NULL,                  -- requests that the provider is done with
    words TEXT NOT NULL                         -- why it came to nothing
);

CREATE INDEX batch_of_run ON batch (run_id);

-- One request of a batch.
CREATE TABLE batch_item (
    batch_id INTEGER NOT NULL REFERENCES batch (id),
    number INTEGER NOT NULL,                    -- with the marker it makes the custom id
    sample_id INTEGER NOT NULL REFERENCES sample (id),
    attempt INTEGER NOT NULL,
    prompt_sha TEXT NOT NULL,                   -- hexadecimal, of a judge's filled prompt; '' for the model
    raw_input INTEGER NOT NULL,                 -- input tokens by the rules
    image_scale REAL NOT NULL,
    image_sha256 TEXT NOT NULL,
    image_note TEXT NOT NULL,
    fate TEXT,                                  -- NULL: not known yet, and nobody else may ask this row
    PRIMARY KEY (batch_id, number)
) WITHOUT ROWID;

CREATE INDEX open_batch_item ON batch_item (sample_id) WHERE fate IS NULL;
