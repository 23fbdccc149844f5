//! Ledgers of many attempts.

use super::support::{Workspace, open_ledger};

/// A month, in microseconds.
const MONTH_US: i64 = 30 * 24 * 3_600_000_000;

/// A workspace with completed attempts in its ledger, in a number of batches: over a month, or over a year for several batches.
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
    let insert = "INSERT INTO attempt (id, batch, job, fingerprint, normalized, model, service, key, state, charge, is_declared, is_unfinished,
            needs_download, is_reviewed, price_micros, task, intended_us, record)
        VALUES (?1, ?2, ?3, ?4, ?5, 'alpha-2', 's', 'k', 'completed', 'charged', false, false, false, false, 900000, ?6, ?7, ?8)";
    let now = jiff::Timestamp::now().as_microsecond();
    for number in 0..attempts {
        let (id, batch, job) = (number + 1, 1 + number * batches / attempts, format!("j{}", number % 1000));
        let (fingerprint, normalized, task) = (format!("{number:064x}"), format!("n{number}"), format!("task{number}"));
        let intended_us = now - span + number * (span / attempts);
        let at = jiff::Timestamp::from_microsecond(intended_us).expect("a time");
        let record = serde_json::json!({
            "id": id, "purchase": {
                "job": job, "request": { "body": format!("{{\"prompt\":\"{}\"}}", "0".repeat(200)), "fingerprint": fingerprint },
                "model": "alpha-2", "price": "0.90", "charging": "at_submission", "typical_s": [60, 180], "labels": {}, "output": null,
            },
            "normalized": normalized, "account": { "service": "s", "key": "k" },
            "state": "completed", "task": { "id": task, "alias": null }, "video_url": format!("https://v.example/{number}"),
            "error": null, "polls": 0, "intended_at": at, "answered_at": at, "ended_at": at,
            "file": { "path": format!("v{number}.mp4"), "sha256": format!("v{number}"), "bytes": 1000 }, "fetched_at": at,
            "particulars": {},
        });
        let values = rusqlite::params![id, batch, job, fingerprint, normalized, task, intended_us, record.to_string()];
        transaction.prepare_cached(insert).and_then(|mut insert| insert.execute(values)).expect("an attempt");
        let spent = "INSERT INTO spent VALUES ('', '', ?1, 900000) ON CONFLICT DO UPDATE SET micros = micros + 900000";
        let quarter = intended_us.div_euclid(900_000_000);
        transaction.prepare_cached(spent).and_then(|mut spent| spent.execute([quarter])).expect("a sum");
    }
    transaction.commit().expect("a commit");
    here
}
