//! Ledgers of many attempts.

use super::support::{Workspace, open_ledger};

/// What a month holds, in microseconds.
const MONTH_US: i64 = 30 * 24 * 3_600_000_000;

/// A workspace whose ledger has so many completed attempts in so many batches: over a month, or over a year if there are several.
pub fn with_books(manifest: &str, attempts: i64, batches: i64) -> Workspace {
    let here = Workspace::with_manifest(manifest);
    // The program makes the file.
    here.shotlist(&["limit", "set", "-q", "--day", "1000000"]).ends_with(0);
    let mut ledger = open_ledger(&here.path(".shotlist/ledger.db"));
    let transaction = ledger.transaction().expect("a transaction");
    for batch in 0..batches {
        transaction.execute("INSERT INTO batch (name, batch) VALUES ('m', 'b' || ?1)", [batch]).expect("a batch");
    }
    let span = if batches > 1 { 12 * MONTH_US } else { MONTH_US };
    let insert = "INSERT INTO attempt (batch, job, fingerprint, normalized, request, model, price_micros, charging, typical_min_s, typical_max_s,
            service, key, state, task, video_url, intended_us, answered_us, ended_us, file, sha256, bytes, fetched_us)
        WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < ?1 - 1)
        SELECT 1 + n * ?2 / ?1, 'j' || n % 1000, lower(hex(zeroblob(28))) || printf('%08x', n), 'n' || n, '{\"prompt\":\"' || hex(zeroblob(100)) || '\"}',
            'alpha-2', 900000, 'at-submission', 60, 180, 's', 'k', 'completed', 'task' || n, 'https://v.example/' || n,
            ?3 - ?4 + n * (?4 / ?1), 0, 0, 'v' || n || '.mp4', 'v' || n, 1000, 1 FROM n";
    let now = jiff::Timestamp::now().as_microsecond();
    transaction.execute(insert, [attempts, batches, now, span]).expect("attempts");
    transaction.commit().expect("a commit");
    here
}
