//! The other commands on a shared ledger.

use std::process::Command;

use serde_json::Value;

use crate::cluster::Cluster;
use crate::proxy::Proxy;
use crate::support::{Ended, Workspace, has_code, priced, wait_until};
use crate::team::{Team, all_end, jobs, murdered};

fn runners_of(team: &Team, desk: usize) -> Vec<Value> {
    let report: Value = team.desks[desk].json("shotlist-out/m/report.json");
    report["jobs"].as_array().expect("jobs").iter().map(|job| job["runner"].clone()).collect()
}

fn videos(here: &Workspace) -> usize {
    std::fs::read_dir(here.path("shotlist-out/m"))
        .map_or(0, |files| files.flatten().filter(|file| file.path().extension().is_some_and(|it| it == "mp4")).count())
}

/// A second person looks at the ledger during a run.
#[test]
fn other_machine_sees_active_run() {
    let team = Team::new(2, 2);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    let status = || -> Value {
        let json = team.command(1, &["status", "m.yaml", "--format", "json"]).ends_with(0).stdout;
        serde_json::from_str(&json).expect("JSON")
    };
    let told = status();
    assert_eq!((&told["jobs"][0]["state"], told.get("frozen")), (&"in_doubt".into(), None), "{told}");
    let busy = team.run(1, &[]).ends_with(75).stderr;
    assert!(busy.contains("desk-0 process"), "{busy}");
    std::fs::remove_file(&flag).expect("it goes on");
    assert_eq!(Ended::wait_for(child).code, Some(0));
    for command in [&["spend", "m.yaml"][..], &["report", "m.yaml"], &["status", "m.yaml"]] {
        let told = team.command(1, command).ends_with(0).stdout;
        assert!(told.contains("1.80"), "{command:?}: {told}");
    }
    team.command(1, &["limit", "set", "--freeze"]).ends_with(0);
    let told = status();
    assert!(told["frozen"].is_string(), "{told}");
    let metrics = team.command(1, &["status", "m.yaml", "--format", "prometheus"]).ends_with(0).stdout;
    assert!(metrics.contains("shotlist_ledger_frozen{name=\"m\",batch=\"\"} 1\n"), "{metrics}");
    team.command(1, &["limit", "set", "--unfreeze"]).ends_with(0);
    // The password is in no command that is shown, and in no report.
    let with = team.database.url().replace("postgres@", "postgres:secret@");
    let plan = ["run", "m.yaml", "--plan", "--retake", "*"];
    let shown = team.command(1, &plan).env("SHOTLIST_LEDGER", &with).ends_with(0);
    assert!(!shown.stdout.contains("secret") && !shown.stderr.contains("secret"), "{}{}", shown.stdout, shown.stderr);
    // A shell that has the address needs no other, and another shell gets it with its options.
    assert!(shown.stdout.contains("to buy exactly this: ") && !shown.stdout.contains("--ledger"), "{}", shown.stdout);
    let named = format!("{}?connect_timeout=7", team.database.url());
    let shown = team.command(1, &[&plan[..], &["--ledger", &named]].concat()).ends_with(0).stdout;
    assert!(shown.contains("connect_timeout=7"), "{shown}");
}

/// Each has its own, and brings the others' where it wants them.
#[test]
fn video_belongs_to_the_machine_of_its_download() {
    let mut team = Team::new(2, 2);
    let here = Workspace::new();
    team.simulator = crate::support::Simulator::start(&here, &["--speed", "400"]);
    let run = [
        "run",
        "m.yaml",
        "--yes",
        "--first-poll",
        "0s",
        "--poll-interval",
        "100ms",
        "--allow-private-hosts",
        "--allow-http",
    ];
    team.command(0, &run).ends_with(0);
    assert_eq!((videos(&team.desks[0]), runners_of(&team, 0)), (2, vec!["desk-0".into(), "desk-0".into()]));
    let second = team.command(1, &run).ends_with(0);
    assert_eq!(videos(&team.desks[1]), 0, "they are where they are: {}", second.stdout);
    let fetched = team.command(1, &["fetch", "m.yaml", "--select", "j0"]).ends_with(0);
    assert_eq!(videos(&team.desks[1]), 1, "{}", fetched.stdout);
    team.command(1, &["fetch", "m.yaml"]).ends_with(0);
    assert_eq!((videos(&team.desks[1]), runners_of(&team, 1)), (2, vec!["desk-1".into(), "desk-1".into()]));
    // Videos of one machine are not missing on another.
    team.command(0, &["fetch", "m.yaml"]).ends_with(0);
    team.command(0, &run).ends_with(0);
    assert_eq!((videos(&team.desks[0]), team.agree()), (2, (2, 0)));
}

#[test]
fn ledger_moves_from_a_file_into_the_database_and_back() {
    let team = Team::new(2, 3);
    let in_a_file = |args: &[&str]| team.command(0, args).without_env("SHOTLIST_LEDGER");
    let quick = ["--yes", "--no-download", "--first-poll", "0s", "--poll-interval", "100ms"];
    in_a_file(&[&["run", "m.yaml", "--select", "j0"], &quick[..]].concat()).ends_with(0);
    in_a_file(&["limit", "set", "--month", "50", "--timezone", "Europe/Berlin"]).ends_with(0);
    let (file, url) = (".shotlist/ledger.db", team.database.url());
    let copied = in_a_file(&["ledger", "copy", file, &url]).ends_with(0).stdout;
    assert!(copied.contains("1 batch, 1 attempt, $0.90"), "{copied}");
    in_a_file(&["ledger", "copy", file, &url]).ends_with(2);
    // Two ledgers in use would buy twice.
    let refused = in_a_file(&[&["run", "m.yaml", "--select", "j1"], &quick[..]].concat()).ends_with(3).stderr;
    assert!(has_code(&refused, "frozen"), "{refused}");
    assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.attempt"), "1", "whole, or not at all");
    // Purchases of the other ledger are known here, and not bought again.
    let plan = team.command(1, &["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.contains("2 jobs to submit"), "{plan}");
    let shown = team.command(1, &["limit", "show"]).ends_with(0).stdout;
    assert!(shown.contains("ledger.month: $50.00 (Europe/Berlin), $0.90 used, $49.10 left"), "{shown}");
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    team.command(1, &["ledger", "copy", &url, "back.db"]).ends_with(75);
    assert!(!team.desks[1].path("back.db").exists());
    std::fs::remove_file(&flag).expect("it goes on");
    assert_eq!(Ended::wait_for(child).code, Some(0));
    // A bill found one of them free, before and after its journey.
    let free =
        "SET search_path TO shotlist; UPDATE attempt SET state = 'failed', charge = 'none', record = (record::jsonb || jsonb_build_object(
             'state', 'failed', 'purchase', record::jsonb -> 'purchase' || '{\"charging\": \"undocumented\"}', 'particulars',
                 COALESCE(record::jsonb -> 'particulars', '{}') || '{\"billed\": {\"is_charged\": false, \"source\": \"b\", \"at\": \"2026-01-01T00:00:00Z\"}}'))::text WHERE job = 'j2';
         UPDATE spent SET micros = micros - 900000 WHERE label = ''";
    team.database.sql(free);
    let retake = r#"{"globs": ["j*"], "after": 1}"#;
    team.database.sql(&format!("SET search_path TO shotlist; UPDATE batch SET retake = '{retake}'"));
    let back = team.command(1, &["ledger", "copy", &url, "back.db"]).ends_with(0).stdout;
    let bought = team.database.sql("SELECT count(*) FROM shotlist.attempt");
    assert!(back.contains(&format!("{bought} attempts, $1.80")), "{back}");
    let on_the_file = |args: &[&str]| team.command(1, &[args, &["--ledger", "back.db"]].concat()).ends_with(0).stdout;
    assert!(on_the_file(&["ledger", "check"]).contains("is whole"));
    let plan = on_the_file(&["run", "m.yaml", "--plan", "--format", "json"]);
    assert_eq!(priced(&serde_json::from_str(&plan).expect("JSON")), (0, "0.00".to_owned()));
    assert!(on_the_file(&["status", "m.yaml"]).contains("`--retake 'j*'`"));
    let books = |ledger: &str| {
        let told = team.command(1, &["spend", "--ledger", ledger, "--format", "json"]).ends_with(0).stdout;
        serde_json::from_str::<Value>(&told).expect("JSON")["totals"].clone()
    };
    assert_eq!(books("back.db"), books(&url));
}

/// A runner takes over only tasks of its account: the service would not know the others.
#[test]
fn runner_of_another_account_is_refused() {
    let team = Team::new(2, 4);
    let slow = team.run(0, &["--concurrency", "2"]).starts();
    let active = "SELECT count(*) FROM shotlist.attempt WHERE state IN ('queued', 'in_progress')";
    let exists = || team.database.sql("SELECT to_regclass('shotlist.attempt') IS NOT NULL") == "t";
    wait_until("a task is active", || exists() && team.database.sql(active) != "0");
    murdered(slow);
    let other = team.run(1, &["--lock-wait", "5m"]).env("SHOTLIST_API_KEY", "another-key");
    other.fails_with("other-account", 2);
    team.run(1, &["--lock-wait", "5m"]).ends();
    team.agree();
}

/// The copy has all purchases of the source: nobody buys between the first read and the end.
#[test]
fn copy_freezes_its_source_before_it_reads() {
    let team = Team::new(2, 4);
    team.run(0, &["--sample", "1"]).ends_with(0);
    let proxy = Proxy::to(Cluster::shared().port);
    let target = Cluster::shared().database();
    let through = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), target.name);
    proxy.stall(true);
    let copy = team.command(0, &["ledger", "copy", &team.ledger, &through]).starts();
    let reason = || team.database.sql("SELECT coalesce(frozen, '') FROM shotlist.ledger");
    wait_until("the source is frozen", || reason().contains("being copied"));
    let refused = team.run(1, &[]).ends_with(3).stderr;
    assert!(has_code(&refused, "frozen"), "{refused}");
    proxy.stall(false);
    assert_eq!(Ended::wait_for(copy).code, Some(0));
    assert_eq!(target.sql("SELECT count(*) FROM shotlist.attempt"), "1");
    assert!(reason().contains("it was copied to"), "{}", reason());
    // A failed copy leaves its source unchanged.
    team.command(0, &["limit", "set", "--unfreeze"]).ends_with(0);
    team.command(0, &["ledger", "copy", &team.ledger, &target.url()]).ends_with(2);
    assert_eq!(reason(), "");
    team.run(1, &[]).ends_with(0);
    assert_eq!(team.agree(), (4, 0));
}

/// During runs, and unnoticed by them.
#[test]
fn backup_of_a_database_freezes_only_the_backup() {
    let team = Team::new(2, 3);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-intent:2");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    team.command(1, &["ledger", "backup", "backup.db"]).ends_with(0);
    team.command(1, &["ledger", "backup", "backup.db"]).ends_with(2);
    std::fs::remove_file(&flag).expect("it goes on");
    assert_eq!(Ended::wait_for(child).code, Some(0));
    assert_eq!(team.agree(), (3, 0));
    let checked = team.command(1, &["ledger", "check", "--ledger", "backup.db"]).ends_with(0).stdout;
    assert!(checked.contains("is whole"), "{checked}");
    let help = team.command(1, &["ledger", "check"]).ends_with(2).stderr;
    assert!(help.contains("`shotlist ledger backup FILE`"), "{help}");
    // It lacks later purchases.
    team.command(1, &["run", "m.yaml", "--plan", "--ledger", "backup.db"]).fails_with("frozen", 3);
}

/// Days and months are the database's: a machine with a wrong clock doesn't spend the money of another month.
#[test]
fn clocks_an_hour_apart_change_nothing() {
    let faketime = Command::new("faketime").arg("--version").output();
    assert!(faketime.is_ok(), "faketime is here: apt install faketime");
    let team = Team::of_batches(3, 50);
    let started = ["+0h", "+1h", "-1h"].into_iter().enumerate().map(|(desk, shift)| {
        let script = format!(
            "exec faketime -f '{shift}' \"$0\" run m.yaml --yes --no-download --quiet --first-poll 0s --poll-interval 100ms \
             --poll-floor 20ms --concurrency 20"
        );
        let program = crate::support::Program::script(team.desks[desk].root(), &script);
        team.prepared(desk, program).env("FAKETIME_DONT_FAKE_MONOTONIC", "1").starts()
    });
    let started = started.collect();
    all_end(started, &[0]);
    assert_eq!(team.agree(), (150, 0));
    let spread = "SELECT (max(intended_us) - min(intended_us)) / 60000000 < 10 FROM shotlist.attempt";
    assert_eq!(team.database.sql(spread), "t", "all times are by one clock");
    let ends = "SELECT max(abs(extract(epoch FROM (record::json->>'ended_at')::timestamptz) * 1000000 - intended_us)) < 600000000
         FROM shotlist.attempt";
    assert_eq!(team.database.sql(ends), "t", "the ends, too");
    assert_eq!(team.database.sql("SELECT count(DISTINCT runner) FROM shotlist.attempt"), "3");
}

/// A daily limit follows the ledger's day, also on a machine with a calendar a day ahead.
#[test]
fn runner_with_a_calendar_ahead_spends_the_same_day() {
    let team = Team::new(2, 2);
    let manifest = jobs(2).replace("jobs:\n", "timezone: UTC\nbudget: { day: 0.90 }\njobs:\n");
    for desk in &team.desks {
        desk.write("m.yaml", &manifest);
    }
    let args = "run m.yaml --yes --no-download --quiet --first-poll 0s --poll-interval 100ms --sample 1";
    for (desk, shift, code) in [(0, "+0h", 0), (1, "+25h", 3)] {
        let script = format!("exec faketime -f '{shift}' \"$0\" {args}");
        let program = crate::support::Program::script(team.desks[desk].root(), &script);
        let ended = team.prepared(desk, program).env("FAKETIME_DONT_FAKE_MONOTONIC", "1").ends_with(code);
        assert!(code == 0 || ended.stderr.contains("budget.day"), "{}", ended.stderr);
    }
    assert_eq!(team.agree(), (1, 0));
}

/// The order that the reference gives: a run between the restore and the reconciled bill submits nothing.
#[test]
fn restored_dump_stays_frozen_in_the_documented_order() {
    let team = Team::new(1, 4);
    team.run(0, &["--sample", "2"]).ends_with(0);
    let (file, address) = (team.desks[0].path("books.dump"), team.database.url());
    let reference = team.command(0, &["help", "machines"]).ends_with(0).stdout;
    let documented = |program: &str| {
        let line = reference.lines().find(|line| line.trim().starts_with(&format!("{program} --"))).expect("a command");
        let line = line.replace("books.dump", &file.display().to_string()).replace("\"$SHOTLIST_LEDGER\"", &address);
        let mut words = line.split_whitespace().map(str::to_owned);
        let path = crate::cluster::program(&words.next().expect("a program"));
        crate::cluster::done(Command::new(path).args(words));
    };
    let (freeze, unfreeze) = (&["limit", "set", "--freeze"], &["limit", "set", "--unfreeze"]);
    documented("pg_dump");
    team.run(0, &["--sample", "1"]).ends_with(0);
    team.command(0, freeze).ends_with(0);
    documented("pg_restore");
    team.command(0, freeze).ends_with(0);
    assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.attempt"), "2", "the dump lacks a purchase");
    team.run(0, &[]).fails_with("frozen-by-failover", 74);
    assert_eq!(team.charges().len(), 3);
    team.command(0, unfreeze).ends_with(0);
}

/// A ledger that can't be read to its end leaves no backup: an empty one would make everything due again.
#[test]
fn interrupted_backup_leaves_no_file() {
    let team = Team::new(1, 2);
    for batch in ["one", "two"] {
        team.run(0, &["--batch", batch]).ends_with(0);
    }
    let damage = "UPDATE shotlist.attempt SET record = 'x' WHERE batch = (SELECT max(id) FROM shotlist.batch)";
    team.database.sql(damage);
    let before = team.desks[0].files();
    team.command(0, &["ledger", "backup", "books.db"]).fails_with("ledger-unavailable", 74);
    team.command(0, &["ledger", "copy", &team.ledger, "copy.db"]).fails_with("ledger-unavailable", 74);
    assert_eq!(team.desks[0].files(), before, "nothing is left");
    let frozen = team.database.sql("SELECT frozen IS NULL FROM shotlist.ledger");
    assert_eq!(frozen, "t", "the source is as it was");
}

/// After a lost response to its commit, a copy may be whole: source and copy must not both buy.
#[test]
fn copy_with_a_lost_commit_leaves_the_source_frozen() {
    let team = Team::new(1, 2);
    let own = ["--ledger", "own.db"];
    team.run(0, &[&own[..], &["--sample", "1"]].concat()).ends_with(0);
    // Makes the tables.
    team.command(0, &["limit", "set", "--unfreeze"]).ends_with(0);
    let proxy = Proxy::to(Cluster::shared().port);
    let target = format!("postgres://postgres@127.0.0.1:{}/{}", proxy.port(), team.database.name);
    proxy.lose_commits(100);
    let failed = team.command(0, &["ledger", "copy", "own.db", &target]).fails_with("ledger-unavailable", 74);
    assert!(failed.stderr.contains("which may be whole"), "{}", failed.stderr);
    assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.attempt"), "1", "this one is");
    let refused = team.run(0, &own).fails_with("frozen", 3);
    assert!(refused.stderr.contains("it may have been copied to"), "{}", refused.stderr);
    assert_eq!(team.charges().len(), 1);
}
