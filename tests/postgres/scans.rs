//! A ledger of many attempts: no statement of a run reads all of them.

use crate::support::wait_until;
use crate::team::Team;

/// Attempts of earlier batches, with tasks, labels, and links.
const OLD: &str = "SET search_path TO shotlist;
    INSERT INTO batch (id, name, batch) SELECT 1000 + n, 'old', 'b' || n FROM generate_series(1, 200) AS n;
    INSERT INTO attempt (id, batch, job, fingerprint, normalized, model, labels, service, key, state, charge, is_declared, is_unfinished,
        needs_download, is_reviewed, price_micros, task, alias, intended_us, record, version, was_forgotten)
    SELECT n, 1001 + n / 500, 'j' || n % 500, md5('f' || n), md5('r' || n), 'alpha-2', '{\"client\": \"acme\"}', 's', 'k', 'completed', 'charged',
        false, false, false, false, 900000, 'old' || n, CASE WHEN n % 2 = 0 THEN 'alias' || n END, 1577836800000000 + n * 1000000,
        (SELECT record FROM attempt LIMIT 1), 1, false FROM generate_series(1::bigint, 99999) AS n;";

#[test]
fn run_in_a_filled_ledger_scans_no_attempts() {
    let team = Team::new(2, 12);
    team.run(0, &["--sample", "1"]).ends_with(0);
    team.database.sql(OLD);
    team.database.sql("VACUUM ANALYZE");
    let scans = || {
        let sql =
            "SELECT seq_scan, idx_scan FROM pg_stat_user_tables WHERE schemaname = 'shotlist' AND relname = 'attempt'";
        let row = team.database.sql(sql);
        let (all, by_index) = row.split_once('|').expect("two counts");
        (all.parse::<u64>().expect("a count"), by_index.parse::<u64>().expect("a count"))
    };
    let before = scans();
    // Two runners, a task that is taken over, limits, and a resolved doubt.
    team.command(1, &["limit", "set", "--month", "1000"]).ends_with(0);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "2"]).env("SHOTLIST_HALT_AT", "after-commit:9");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    crate::team::murdered(child);
    team.run(1, &[]).ends();
    team.command(1, &["resolve", "m.yaml"]).ends();
    wait_until("the counts are in", || scans().1 > before.1 + 20);
    assert_eq!(scans().0, before.0, "a statement read every attempt");
}
