-- A ledger of version 1, as shotlist made it, with one finished task.
CREATE TABLE batch (
    id    INTEGER PRIMARY KEY,
    name  TEXT NOT NULL,
    batch TEXT NOT NULL,
    UNIQUE (name, batch)
);
CREATE TABLE attempt (
    id            INTEGER PRIMARY KEY,
    batch         INTEGER NOT NULL REFERENCES batch (id),
    job           TEXT NOT NULL,
    fingerprint   TEXT NOT NULL,
    request       TEXT NOT NULL,
    model         TEXT NOT NULL,
    price_micros  BIGINT NOT NULL,
    charging      TEXT NOT NULL,
    typical_min_s INTEGER NOT NULL,
    typical_max_s INTEGER NOT NULL,
    service       TEXT NOT NULL,
    key           TEXT NOT NULL,
    state         TEXT NOT NULL,
    task          TEXT,
    video_url     TEXT,
    error         TEXT,
    polls         INTEGER NOT NULL DEFAULT 0,
    intended_us   BIGINT NOT NULL,
    answered_us   BIGINT,
    ended_us      BIGINT
);
CREATE INDEX attempt_of_batch ON attempt (batch, id);
CREATE INDEX attempt_of_job ON attempt (batch, job);
CREATE INDEX attempt_by_time ON attempt (intended_us);
INSERT INTO batch VALUES (1, 'n', '');
INSERT INTO attempt VALUES (1, 1, 'a', 'f', '{}', 'alpha-2', 900000, 'at-submission', 60, 180, 's', 'k', 'completed', 't',
    'https://v.example/t.mp4', NULL, 3, 1790000000000000, 1790000001000000, 1790000100000000);
PRAGMA application_id = 0x73686f74;
PRAGMA user_version = 1;
