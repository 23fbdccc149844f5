-- The tables and indexes of a ledger in a file. `schema.rs` explains `checksum` and `sums`, and adds the triggers that keep them.

CREATE TABLE batch (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    batch    TEXT NOT NULL,
    retake   TEXT,
    checksum INTEGER NOT NULL DEFAULT 0,
    UNIQUE (name, batch)
);
CREATE TABLE attempt (
    id            INTEGER PRIMARY KEY,
    batch         INTEGER NOT NULL,
    job           TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    normalized    TEXT NOT NULL,
    model         TEXT NOT NULL,
    labels        TEXT,
    service       TEXT NOT NULL,
    key           TEXT NOT NULL,
    state         TEXT NOT NULL,
    charge        TEXT NOT NULL,
    is_declared   INTEGER NOT NULL,
    is_unfinished INTEGER NOT NULL,
    needs_download INTEGER NOT NULL,
    is_reviewed   INTEGER NOT NULL,
    price_micros  BIGINT NOT NULL,
    task          TEXT,
    alias         TEXT,
    intended_us   BIGINT NOT NULL,
    record        TEXT NOT NULL
);
CREATE INDEX attempt_of_batch ON attempt (batch, id);
CREATE INDEX attempt_of_job ON attempt (batch, job);
CREATE INDEX attempt_unfinished ON attempt (batch) WHERE is_unfinished;
CREATE INDEX attempt_reviewed ON attempt (intended_us) WHERE is_reviewed;
CREATE INDEX attempt_by_time ON attempt (intended_us);
CREATE INDEX attempt_by_task ON attempt (task) WHERE task IS NOT NULL;
CREATE INDEX attempt_by_alias ON attempt (alias) WHERE alias IS NOT NULL;
CREATE INDEX attempt_by_normalized ON attempt (normalized);
CREATE INDEX attempt_by_model ON attempt (model, id) WHERE state = 'completed';
CREATE TABLE ledger (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    commits  BIGINT NOT NULL,
    frozen  TEXT,
    checksum INTEGER NOT NULL DEFAULT 0,
    sums     INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE spent (
    label   TEXT NOT NULL,
    value   TEXT NOT NULL,
    quarter INTEGER NOT NULL,
    micros  BIGINT NOT NULL,
    PRIMARY KEY (label, value, quarter)
) WITHOUT ROWID;
CREATE TABLE unsent (
    batch  INTEGER NOT NULL,
    job    TEXT NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (batch, job)
) WITHOUT ROWID;
CREATE TABLE ledger_limit (
    key    TEXT PRIMARY KEY,
    record TEXT NOT NULL
) WITHOUT ROWID;
