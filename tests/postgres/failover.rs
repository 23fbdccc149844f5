//! Failover to a standby without the last commits: runners restore the lost purchases, and nobody buys until the user unfreezes the
//! ledger.

use std::path::Path;

use crate::cluster::{Cluster, as_postgres, directory, done, program};
use crate::proxy::Proxy;
use crate::support::{Ended, wait_until};
use crate::team::{Team, all_end};

/// A copy of a cluster that follows it, not started yet.
fn standby_of(primary: &Cluster) -> tempfile::TempDir {
    let directory = directory();
    let copy = as_postgres(&program("pg_basebackup"))
        .args(["-h", "127.0.0.1", "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "--no-sync", "-p"])
        .arg(primary.port.to_string())
        .arg("-D")
        .arg(directory.path().join("data"))
        .output()
        .expect("pg_basebackup starts");
    assert!(copy.status.success(), "{}", String::from_utf8_lossy(&copy.stderr));
    directory
}

fn promote(data: &Path) {
    done(as_postgres(&program("pg_ctl")).args(["promote", "-w", "-D"]).arg(data));
}

fn bought(team: &Team) -> u32 {
    team.database.sql("SELECT count(*) FROM shotlist.attempt").parse().expect("a number")
}

#[test]
fn purchases_missing_on_a_standby_are_restored_and_all_stop() {
    let mut primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
    let mut team = Team::on(primary.database(), 2, 0, &["--speed", "40"]);
    team.split(200);
    let proxy = Proxy::to(primary.port);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    // One job each, so that the ledger is there before it is copied.
    team.run(0, &["--sample", "1"]).ends_with(0);
    let started = team.all_at_once(&["--concurrency", "20"]);
    wait_until("they are at it", || bought(&team) > 20);
    // The standby has everything until here, and nothing that comes after.
    let copy = standby_of(&primary);
    let had = bought(&team);
    wait_until("the primary knows more", || bought(&team) > had + 20);
    proxy.close(true);
    primary.stop();
    let standby = Cluster::of_directory(copy, &[]);
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    proxy.lead_to(standby.port);
    proxy.close(false);
    for ended in started.into_iter().map(Ended::wait_for) {
        assert_eq!(ended.code, Some(74), "{}", ended.stderr);
        let is_told = ended.stderr.contains("forgotten") || ended.stderr.contains("another database server took over");
        assert!(is_told, "{}", ended.stderr);
    }
    // Everything that was charged is known again: the tasks' ids survived in the runners.
    let (charges, _) = team.agree();
    assert!(charges > had as usize, "{charges} of {had}");
    assert!(
        team.database
            .sql("SELECT count(*) FROM shotlist.attempt WHERE was_forgotten")
            .parse::<u32>()
            .expect("a number")
            > 0
    );
    // Purchases stay frozen until the user unfreezes them.
    let before = bought(&team);
    let refused = team.run(1, &[]).ends();
    assert_eq!((refused.code, bought(&team)), (Some(74), before), "{}", refused.stderr);
    refused.shows("frozen-by-failover");
    team.command(0, &["limit", "set", "--unfreeze"]).ends_with(0);
    all_end(team.all_at_once(&[]), &[0, 7]);
    let (charges, doubts) = team.agree();
    assert!(charges + doubts >= 400, "{charges} {doubts}");
}

/// Also if no live runner has lost a purchase: a silent runner may have, even after its lease has expired.
fn silent_after_a_change_of_server(is_dead_by_then: bool) {
    let mut primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
    let mut team = Team::on(primary.database(), 2, 0, &["--speed", "40"]);
    team.split(100);
    let proxy = Proxy::to(primary.port);
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let mut started = team.all_at_once(&["--concurrency", "4"]);
    wait_until("they are at it", || {
        team.database.sql("SELECT to_regclass('shotlist.attempt') IS NOT NULL") == "t" && bought(&team) > 8
    });
    let copy = standby_of(&primary);
    proxy.close(true);
    // It dies with the server, and its knowledge is lost.
    crate::team::murdered(started.remove(0));
    if is_dead_by_then {
        started.drain(..).for_each(crate::team::murdered);
        std::thread::sleep(std::time::Duration::from_secs(3));
    }
    primary.stop();
    let standby = Cluster::of_directory(copy, &[]);
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    proxy.lead_to(standby.port);
    proxy.close(false);
    if is_dead_by_then {
        started.push(team.run(1, &["--concurrency", "4", "--lock-wait", "5m"]).starts());
    }
    for ended in started.into_iter().map(Ended::wait_for) {
        assert_eq!(ended.code, Some(74), "{}", ended.stderr);
    }
    assert!(team.database.sql("SELECT frozen FROM shotlist.ledger").contains("may be missing"));
    // Nobody else knows the purchase of the dead runner and the dead server, so nobody may buy it again.
    let mut prompts: Vec<String> = team.charges().into_iter().map(|(prompt, _)| prompt).collect();
    let bought = prompts.len();
    prompts.sort();
    prompts.dedup();
    assert_eq!(prompts.len(), bought, "nothing was bought twice");
}

#[test]
fn nobody_buys_after_a_failover_until_all_have_answered() {
    silent_after_a_change_of_server(false);
}

#[test]
fn runner_lost_before_a_failover_is_not_forgotten() {
    silent_after_a_change_of_server(true);
}

/// A team with a server, and a stopped copy of it with one purchase.
fn team_with_an_old_copy() -> (Cluster, Team, tempfile::TempDir) {
    let primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
    let team = Team::on(primary.database(), 2, 12, &["--speed", "400"]);
    team.run(0, &["--sample", "1"]).ends_with(0);
    let copy = standby_of(&primary);
    (primary, team, copy)
}

/// The buyer has ended, so no runner remembers, and the surviving database can't show the loss.
#[test]
fn standby_without_a_runner_freezes_purchases() {
    let (mut primary, mut team, copy) = team_with_an_old_copy();
    team.run(0, &["--sample", "5"]).ends_with(0);
    primary.stop();
    let standby = Cluster::of_directory(copy, &[]);
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    team.ledger = team.database.url();
    let plan = team.command(1, &["run", "m.yaml", "--plan"]).ends_with(74);
    let refused = team.run(1, &[]).ends_with(74);
    for told in [&plan.stderr, &refused.stderr] {
        let is_told = told.contains("a dump was restored, and purchases from 20") && told.contains("reconcile");
        assert!(is_told, "{told}");
    }
    assert_eq!((team.charges().len(), bought(&team)), (6, 1), "nothing is bought before a person has looked");
    // One command is enough, with immediate effect.
    team.command(1, &["limit", "set", "--unfreeze"]).ends_with(0);
    team.run(1, &["--sample", "1"]).ends_with(0);
    assert_eq!(bought(&team), 2);
}

/// A copy of a ledger without a purchase, and one of a ledger that was just unfrozen.
#[test]
fn standby_without_a_purchase_freezes_purchases() {
    for prepare in [&["limit", "set", "--month", "100"][..], &["limit", "set", "--unfreeze"]] {
        let mut primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
        let mut team = Team::on(primary.database(), 2, 4, &["--speed", "400"]);
        team.command(0, prepare).ends_with(0);
        let copy = standby_of(&primary);
        team.run(0, &[]).ends_with(0);
        primary.stop();
        let standby = Cluster::of_directory(copy, &[]);
        promote(&standby.data());
        team.database = standby.named(&team.database.name);
        team.ledger = team.database.url();
        let refused = team.run(1, &[]).fails_with("frozen-by-failover", 74).stderr;
        assert!(refused.contains("purchases from the beginning to 20"), "{refused}");
        assert_eq!(team.charges().len(), 4, "nothing is bought before a person has looked");
    }
}

/// A runner survives the failover, but is disconnected until another runner has started.
#[test]
fn runner_restores_purchases_after_a_failover() {
    let (mut primary, mut team, copy) = team_with_an_old_copy();
    let proxy = Proxy::to(primary.port);
    let direct = team.ledger.clone();
    team.ledger = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-intent:4");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it has bought some", || flag.exists());
    proxy.close(true);
    let known = team.charges().len();
    primary.stop();
    let standby = Cluster::of_directory(copy, &[]);
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    assert_ne!(direct, team.database.url());
    let through = std::mem::replace(&mut team.ledger, team.database.url());
    team.run(1, &[]).ends_with(74);
    assert_eq!(team.charges().len(), known, "the other runner bought nothing");
    team.ledger = through;
    proxy.lead_to(standby.port);
    proxy.close(false);
    std::fs::remove_file(&flag).expect("it goes on");
    assert_eq!(Ended::wait_for(child).code, Some(74));
    let mut prompts: Vec<String> = team.charges().into_iter().map(|(prompt, _)| prompt).collect();
    prompts.sort();
    prompts.dedup();
    // Each charge is known again, once. The halted intent is sent unless its deadline has passed.
    let (charges, _) = team.agree();
    assert_eq!((prompts.len(), charges), (team.charges().len(), team.charges().len()));
    assert!(
        (charges..=charges + 1).contains(&(bought(&team) as usize)),
        "{charges} charges, {} attempts",
        bought(&team)
    );
}

/// A primary with a team, and a standby that each commit waits for.
fn with_a_synchronous_standby() -> (Cluster, Team, Cluster) {
    let primary = Cluster::start(&["wal_level=replica", "max_wal_senders=4"]);
    let team = Team::on(primary.database(), 2, 22, &["--speed", "400"]);
    let standby = Cluster::of_directory(standby_of(&primary), &[]);
    set_standby_names(&primary, "*");
    wait_until("commits wait for it", || {
        primary.sql("postgres", "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'") == "1"
    });
    (primary, team, standby)
}

fn set_standby_names(primary: &Cluster, names: &str) {
    primary.sql("postgres", &format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
    primary.sql("postgres", "SELECT pg_reload_conf()");
    let current = format!("SELECT current_setting('synchronous_standby_names') = '{names}'");
    wait_until("the server has the names", || primary.sql("postgres", &current) == "t");
}

/// The primary is lost, and the standby starts without the last commits.
fn fail_over(mut primary: Cluster, standby: &mut Cluster, team: &mut Team) {
    primary.stop();
    standby.start_again();
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    team.ledger = team.database.url();
}

/// A formerly synchronous standby can't know that it lacks commits, because it lacks that note, too.
#[test]
fn synchronous_standby_freezes_purchases() {
    let (primary, mut team, mut standby) = with_a_synchronous_standby();
    team.run(0, &["--sample", "2"]).ends_with(0);
    standby.stop();
    // The usual reaction of an administrator.
    set_standby_names(&primary, "");
    team.run(0, &[]).ends_with(0);
    assert_eq!(team.charges().len(), 22);
    fail_over(primary, &mut standby, &mut team);
    assert_eq!(bought(&team), 2, "the standby lacks twenty purchases");
    team.run(1, &[]).fails_with("frozen-by-failover", 74);
    assert_eq!(team.charges().len(), 22, "nothing is bought");
}

/// A commit succeeds although its wait for the standby was canceled or terminated. The standby lacks it.
#[test]
fn canceled_wait_for_a_standby_freezes_purchases() {
    let (primary, mut team, mut standby) = with_a_synchronous_standby();
    team.run(0, &["--sample", "2"]).ends_with(0);
    standby.stop();
    let mut run = team.run(0, &["--sample", "4", "--concurrency", "1"]).starts();
    let mut ends = 0;
    wait_until("some are bought although no standby responds", || {
        let end = if ends % 2 == 0 { "pg_cancel_backend" } else { "pg_terminate_backend" };
        let waits = format!("SELECT count({end}(pid)) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
        ends += primary.sql("postgres", &waits).parse::<usize>().expect("a count");
        team.charges().len() >= 5
    });
    run.kill().expect("it ends");
    drop(Ended::wait_for(run));
    fail_over(primary, &mut standby, &mut team);
    let before = team.charges().len();
    team.run(1, &["--lock-wait", "5m"]).ends_with(74);
    assert_eq!(team.charges().len(), before, "nothing is bought");
}

/// No run is active during the restore of a dump, so no runner notices lost purchases.
#[test]
fn restored_dump_freezes_purchases() {
    let team = Team::new(2, 6);
    team.run(0, &["--sample", "1"]).ends_with(0);
    let file = team.here.path("books.dump");
    let url = team.database.url();
    let dump = [format!("--dbname={url}"), "--format=custom".into(), format!("--file={}", file.display())];
    done(std::process::Command::new(program("pg_dump")).args(dump));
    team.run(0, &["--sample", "3"]).ends_with(0);
    let restore = ["--clean", "--if-exists", "--single-transaction", &format!("--dbname={url}")];
    done(std::process::Command::new(program("pg_restore")).args(restore).arg(&file));
    team.command(1, &["run", "m.yaml", "--plan"]).fails_with("frozen-by-failover", 74);
    team.run(1, &[]).fails_with("frozen-by-failover", 74);
    assert_eq!((team.charges().len(), bought(&team)), (4, 1));
    team.command(1, &["limit", "set", "--unfreeze"]).ends_with(0);
    team.run(1, &["--sample", "1"]).ends_with(0);
}

/// An earlier reason, which the failover doesn't replace.
#[test]
fn failover_keeps_an_earlier_freeze() {
    let (mut primary, mut team, copy) = team_with_an_old_copy();
    primary.stop();
    let standby = Cluster::of_directory(copy, &[]);
    promote(&standby.data());
    team.database = standby.named(&team.database.name);
    team.ledger = team.database.url();
    team.database.sql("UPDATE shotlist.ledger SET frozen = 'it was copied to b.db'");
    let frozen = team.command(1, &["run", "m.yaml", "--plan"]).ends_with(74).stderr;
    assert!(
        frozen.contains("it was copied to b.db") && frozen.contains("another database server took over"),
        "{frozen}"
    );
}
