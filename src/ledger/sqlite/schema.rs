//! The ledger's tables: made, recognised, and brought up to date.

use rusqlite::Connection;

/// What a ledger is about. The two never mix: a rehearsal must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}

impl Kind {
    /// How a ledger is told from another program's database, and from one of the other kind: "shot" and "shos" in ASCII.
    fn application_id(self) -> i32 {
        match self {
            Self::Real => 0x7368_6f74,
            Self::Simulated => 0x7368_6f73,
        }
    }
}

/// The version of the tables below. A file with a newer one is refused, never guessed at.
pub(super) const VERSION: i32 = 8;
/// The first version that counts its commits.
pub(super) const COUNTS_SINCE: i32 = 3;
/// The first version that knows labels, and the first that knows why a job was not sent.
const LABELS_SINCE: i32 = 5;
const UNSENT_SINCE: i32 = 7;
/// The first version that keeps the owner's limits.
const OWNER_SINCE: i32 = 8;

const BATCHES_AND_ATTEMPTS: &str = "
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
    seen_us       BIGINT,
    seen_percent  INTEGER,
    ended_us      BIGINT,
    file          TEXT,
    sha256        TEXT,
    bytes         BIGINT,
    fetched_us    BIGINT
);
CREATE INDEX attempt_of_batch ON attempt (batch, id);
CREATE INDEX attempt_of_job ON attempt (batch, job);
CREATE INDEX attempt_by_time ON attempt (intended_us);
";

/// What a ledger of version 1 lacks: it knew nothing of files, and not when a task was first seen being generated.
const FROM_1_TO_2: &str = "
ALTER TABLE attempt ADD COLUMN seen_us BIGINT;
ALTER TABLE attempt ADD COLUMN seen_percent INTEGER;
ALTER TABLE attempt ADD COLUMN file TEXT;
ALTER TABLE attempt ADD COLUMN sha256 TEXT;
ALTER TABLE attempt ADD COLUMN bytes BIGINT;
ALTER TABLE attempt ADD COLUMN fetched_us BIGINT;
";

/// What a ledger of version 2 lacks: the way to an attempt by its task and by what it asked for, how often something was
/// committed, and what was spent in each hour. The hours are kept by triggers, so that no write can forget them, and a
/// limit of a month costs the same whatever was bought in it.
const FROM_2_TO_3: &str = "
CREATE INDEX attempt_by_task ON attempt (task) WHERE task IS NOT NULL;
CREATE INDEX attempt_by_fingerprint ON attempt (fingerprint);
CREATE TABLE ledger (
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    commits BIGINT NOT NULL
);
INSERT INTO ledger VALUES (1, 0);
CREATE TABLE spent (
    hour   INTEGER PRIMARY KEY,
    micros BIGINT NOT NULL
);
INSERT INTO spent SELECT intended_us / 3600000000, sum(price_micros) FROM attempt
    WHERE state NOT IN ('void', 'rejected') GROUP BY 1;
CREATE TRIGGER spent_when_intended AFTER INSERT ON attempt WHEN NEW.state NOT IN ('void', 'rejected') BEGIN
    INSERT INTO spent VALUES (NEW.intended_us / 3600000000, NEW.price_micros)
        ON CONFLICT (hour) DO UPDATE SET micros = micros + excluded.micros;
END;
CREATE TRIGGER spent_when_settled AFTER UPDATE OF state ON attempt
    WHEN (OLD.state IN ('void', 'rejected')) <> (NEW.state IN ('void', 'rejected')) BEGIN
    INSERT INTO spent VALUES (NEW.intended_us / 3600000000,
            iif(NEW.state IN ('void', 'rejected'), -NEW.price_micros, NEW.price_micros))
        ON CONFLICT (hour) DO UPDATE SET micros = micros + excluded.micros;
END;
";

/// What a ledger of version 3 lacks: a second name for a task.
const FROM_3_TO_4: &str = "
ALTER TABLE attempt ADD COLUMN alias TEXT;
CREATE INDEX attempt_by_alias ON attempt (alias) WHERE alias IS NOT NULL;
";

/// What a ledger of version 4 lacks: what is known of an attempt besides its life at the service, and what was spent for each
/// label. What a bill says was never charged counts as spent nowhere.
const FROM_4_TO_5: &str = "
ALTER TABLE attempt ADD COLUMN labels TEXT;
ALTER TABLE attempt ADD COLUMN output TEXT;
ALTER TABLE attempt ADD COLUMN approval TEXT;
ALTER TABLE attempt ADD COLUMN bought_as TEXT;
ALTER TABLE attempt ADD COLUMN declared TEXT;
ALTER TABLE attempt ADD COLUMN declared_us BIGINT;
ALTER TABLE attempt ADD COLUMN billed TEXT;
ALTER TABLE attempt ADD COLUMN billed_source TEXT;
ALTER TABLE attempt ADD COLUMN billed_us BIGINT;
CREATE TABLE spent_for (
    label  TEXT NOT NULL,
    value  TEXT NOT NULL,
    hour   INTEGER NOT NULL,
    micros BIGINT NOT NULL,
    PRIMARY KEY (label, value, hour)
) WITHOUT ROWID;
DROP TRIGGER spent_when_settled;
CREATE TRIGGER spent_when_settled AFTER UPDATE OF state, billed ON attempt
    WHEN (OLD.state IN ('void', 'rejected') OR OLD.billed IS 'none') <> (NEW.state IN ('void', 'rejected') OR NEW.billed IS 'none') BEGIN
    INSERT INTO spent VALUES (NEW.intended_us / 3600000000,
            iif(NEW.state IN ('void', 'rejected') OR NEW.billed IS 'none', -NEW.price_micros, NEW.price_micros))
        ON CONFLICT (hour) DO UPDATE SET micros = micros + excluded.micros;
END;
CREATE TRIGGER spent_for_when_intended AFTER INSERT ON attempt
    WHEN NEW.labels IS NOT NULL AND NEW.state NOT IN ('void', 'rejected') BEGIN
    INSERT INTO spent_for SELECT key, value, NEW.intended_us / 3600000000, NEW.price_micros FROM json_each(NEW.labels) WHERE true
        ON CONFLICT (label, value, hour) DO UPDATE SET micros = micros + excluded.micros;
END;
CREATE TRIGGER spent_for_when_settled AFTER UPDATE OF state, billed ON attempt
    WHEN NEW.labels IS NOT NULL
    AND (OLD.state IN ('void', 'rejected') OR OLD.billed IS 'none') <> (NEW.state IN ('void', 'rejected') OR NEW.billed IS 'none') BEGIN
    INSERT INTO spent_for SELECT key, value, NEW.intended_us / 3600000000,
            iif(NEW.state IN ('void', 'rejected') OR NEW.billed IS 'none', -NEW.price_micros, NEW.price_micros)
        FROM json_each(NEW.labels) WHERE true
        ON CONFLICT (label, value, hour) DO UPDATE SET micros = micros + excluded.micros;
END;
";

/// What a ledger of version 5 lacks: which picture an attempt began with and where a picture can be fetched, and what came of the
/// program that was started for a video.
const FROM_5_TO_6: &str = "
ALTER TABLE attempt ADD COLUMN picture TEXT;
ALTER TABLE attempt ADD COLUMN exec_us BIGINT;
ALTER TABLE attempt ADD COLUMN exec_error TEXT;
ALTER TABLE attempt ADD COLUMN exec_line TEXT;
CREATE TABLE picture_address (
    sha256  TEXT NOT NULL,
    command TEXT NOT NULL,
    url     TEXT NOT NULL,
    at_us   BIGINT NOT NULL,
    PRIMARY KEY (sha256, command)
) WITHOUT ROWID;
";

/// What a ledger of version 6 lacks: why a job was not sent, where that is no submission.
const FROM_6_TO_7: &str = "
CREATE TABLE unsent (
    batch  INTEGER NOT NULL REFERENCES batch (id),
    job    TEXT NOT NULL,
    reason TEXT NOT NULL,
    at_us  BIGINT NOT NULL,
    PRIMARY KEY (batch, job)
) WITHOUT ROWID;
";

/// What a ledger of version 7 lacks: the owner's limits, why nobody may buy with it, and who fetched a video where several machines share a ledger.
const FROM_7_TO_8: &str = "
ALTER TABLE attempt ADD COLUMN fetched_by TEXT;
ALTER TABLE ledger ADD COLUMN stopped TEXT;
CREATE TABLE owner_limit (
    label  TEXT NOT NULL,
    value  TEXT NOT NULL,
    span   TEXT NOT NULL,
    micros BIGINT NOT NULL,
    zone   TEXT NOT NULL,
    PRIMARY KEY (label, value, span)
) WITHOUT ROWID;
";

/// From each version to the next, beginning with the first.
const STEPS: [&str; VERSION as usize - 1] =
    [FROM_1_TO_2, FROM_2_TO_3, FROM_3_TO_4, FROM_4_TO_5, FROM_5_TO_6, FROM_6_TO_7, FROM_7_TO_8];

/// The columns of an attempt that older versions lack, each with the version that brought them. A reader that may not change the file
/// sees them empty, in a view of its connection alone.
const COLUMNS_SINCE: [(i32, &[&str]); 5] = [
    (2, &["seen_us", "seen_percent", "file", "sha256", "bytes", "fetched_us"]),
    (4, &["alias"]),
    (
        5,
        &[
            "labels",
            "output",
            "approval",
            "bought_as",
            "declared",
            "declared_us",
            "billed",
            "billed_source",
            "billed_us",
        ],
    ),
    (6, &["picture", "exec_us", "exec_error", "exec_line"]),
    (8, &["fetched_by"]),
];

const SUMS_OF_1_AND_2: &str = "
CREATE TEMP VIEW spent AS SELECT intended_us / 3600000000 AS hour, sum(price_micros) AS micros FROM main.attempt
    WHERE state NOT IN ('void', 'rejected') GROUP BY hour;
CREATE TEMP VIEW ledger AS SELECT 1 AS id, 0 AS commits;
";

/// Before version 5, nothing had a label.
const LABELS_OF_NONE: &str = "
CREATE TEMP VIEW spent_for AS SELECT '' AS label, '' AS value, 0 AS hour, 0 AS micros WHERE false;
";

/// Before version 7, nobody wrote down why a job was not sent.
const UNSENT_OF_NONE: &str = "
CREATE TEMP VIEW unsent AS SELECT 0 AS batch, '' AS job, '' AS reason, 0 AS at_us WHERE false;
";

/// Before version 8, the owner had no way to say a limit.
const LIMITS_OF_NONE: &str = "
CREATE TEMP VIEW owner_limit AS SELECT '' AS label, '' AS value, '' AS span, 0 AS micros, '' AS zone WHERE false;
";

/// What a file is, as far as its header and its list of tables tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    /// A database without a table.
    Empty,
    /// A ledger of this version, which is known.
    Ledger(i32),
    /// A ledger of a newer version.
    Newer(i32),
    /// A ledger of the other kind.
    OtherKind(Kind),
    /// Another program's.
    Foreign,
}

/// Looks what a database is, all at one moment: another process may be making it.
pub(super) fn recognise(connection: &Connection, kind: Kind) -> rusqlite::Result<Found> {
    let moment = connection.unchecked_transaction()?;
    let number = |pragma: &str| moment.pragma_query_value(None, pragma, |row| row.get::<_, i32>(0));
    let (id, version) = (number("application_id")?, number("user_version")?);
    let tables: i64 = moment.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    let other = [Kind::Real, Kind::Simulated].into_iter().find(|other| other.application_id() == id);
    Ok(match (other, version) {
        (Some(found), 1..=VERSION) if found == kind => Found::Ledger(version),
        (Some(found), _) if found == kind && version > VERSION => Found::Newer(version),
        (Some(found), _) if found != kind => Found::OtherKind(found),
        (None, 0) if id == 0 && tables == 0 => Found::Empty,
        _ => Found::Foreign,
    })
}

/// Makes the tables, or what an older version lacks of them. Nothing if another process has done it meanwhile.
pub(super) fn create_or_upgrade(connection: &mut Connection, kind: Kind) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version = transaction.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
    let steps = match version {
        // The first tables are those of version 2.
        0 => &STEPS[1..],
        1..VERSION => &STEPS[usize::try_from(version - 1).unwrap_or_default()..],
        _ => return Ok(()),
    };
    if version == 0 {
        transaction.execute_batch(BATCHES_AND_ATTEMPTS)?;
    }
    for step in steps {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", kind.application_id())?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Lets a reader that may not change the file see an older version as if it were this one.
pub(super) fn read_as_current(connection: &Connection, version: i32) -> rusqlite::Result<()> {
    if version == VERSION {
        return Ok(());
    }
    let lacking = COLUMNS_SINCE.iter().filter(|(since, _)| version < *since).flat_map(|(_, columns)| *columns);
    let empty = lacking.fold(String::new(), |list, column| list + ", NULL AS " + column);
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.execute_batch(&format!("CREATE TEMP VIEW attempt AS SELECT *{empty} FROM main.attempt"))?;
    if version < COUNTS_SINCE {
        connection.execute_batch(SUMS_OF_1_AND_2)?;
    }
    if version < LABELS_SINCE {
        connection.execute_batch(LABELS_OF_NONE)?;
    }
    if version < UNSENT_SINCE {
        connection.execute_batch(UNSENT_OF_NONE)?;
    }
    if version < OWNER_SINCE {
        connection.execute_batch(LIMITS_OF_NONE)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::BatchKey;
    use crate::ledger::sqlite::open::{open, open_to_read};
    use crate::ledger::sqlite::{books, read};

    /// Every version is read as it is, and says the same once a run has brought it up to date.
    #[test]
    fn a_ledger_of_any_version_is_read_and_upgraded() {
        for (version, made) in (2..=VERSION).zip(1..) {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("ledger.db");
            let connection = Connection::open(&path).expect("a file");
            for step in [BATCHES_AND_ATTEMPTS].iter().chain(&STEPS[1..made]) {
                connection.execute_batch(step).expect("tables");
            }
            connection.pragma_update(None, "application_id", Kind::Real.application_id()).expect("a pragma");
            connection.pragma_update(None, "user_version", version).expect("a pragma");
            let rows = "INSERT INTO batch VALUES (1, 'n', '');
                INSERT INTO attempt (batch, job, fingerprint, request, model, price_micros, charging, typical_min_s,
                    typical_max_s, service, key, state, task, intended_us)
                VALUES (1, 'a', 'f', '{}', 'alpha-2', 900000, 'at-submission', 60, 180, 's', 'k', 'queued', 't', 1)";
            connection.execute_batch(rows).expect("rows");
            if version >= COUNTS_SINCE {
                connection.execute("UPDATE ledger SET commits = 7", []).expect("a count");
                let witness = folder.path().join("ledger.db.witness");
                std::fs::write(witness, format!("commits {:020}\n", 7)).expect("a witness");
            }
            drop(connection);
            let key = BatchKey { name: "n".into(), batch: String::new() };
            let reader = || open_to_read(&path, Kind::Real).expect("no error").expect("a ledger");
            let history = || read::history(&reader(), &key).expect("a history");
            let used = || books::used(&reader(), jiff::Timestamp::UNIX_EPOCH, None).expect("a sum");
            let (before, sum) = (history().attempts().next().cloned().expect("an attempt"), used());
            drop(open(&path, Kind::Real).expect("upgraded"));
            assert_eq!((history().attempts().next(), used()), (Some(&before), sum), "version {version}");
            assert_eq!(sum.to_string(), "0.90");
        }
    }
}
