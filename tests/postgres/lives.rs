//! Whole lives of runners at one batch: the second waits for the first, or for the end of its lease, and buys the rest.

use std::process::Child;
use std::time::Duration;

use crate::support::{Ended, Program, kill, wait_until};
use crate::team::{Team, all_end, murdered, quick};

/// After this time, an intent is too old to be sent: a thirtieth of ten seconds, and some more.
const PAST_SENDING: Duration = Duration::from_millis(600);
/// Longer than any wait of these tests.
const WAIT: [&str; 2] = ["--lock-wait", "5m"];

/// A run at a desk that halts at a place, and that place's file.
fn halted(team: &Team, desk: usize, place: &str, args: &[&str]) -> (Child, std::path::PathBuf) {
    let flag = team.desks[desk].path("halted");
    let run = team.run(desk, args).env("SHOTLIST_HALT_AT", place);
    (run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts(), flag)
}

/// Starts in one directory, with downloads, as pods with one volume.
#[test]
fn runners_in_turn_share_a_directory() {
    for apart in [0, 1, 2] {
        let team = Team::new(1, 30);
        let run: Vec<&str> = quick(&WAIT).into_iter().filter(|arg| *arg != "--no-download").collect();
        let started = (0..3).map(|number| {
            std::thread::sleep(Duration::from_millis(if number == 0 { 0 } else { apart * 300 }));
            team.command(0, &[&run[..], &["--allow-private-hosts", "--allow-http"]].concat()).starts()
        });
        all_end(started.collect(), &[0]);
        assert_eq!(team.agree(), (30, 0));
        let names = team.desks[0].files();
        let count = |extension: &str| {
            names.iter().filter(|name| std::path::Path::new(name).extension().is_some_and(|it| it == extension)).count()
        };
        assert_eq!((count("mp4"), count("part"), count("refused")), (30, 0, 0), "{names:?}");
    }
}

#[test]
fn second_runner_ends_with_75_or_waits_for_the_lease() {
    let team = Team::new(2, 6);
    let (first, flag) = halted(&team, 0, "after-intent:3", &["--concurrency", "1"]);
    wait_until("it halts", || flag.exists());
    team.run(1, &[]).fails_with("batch-locked", 75);
    murdered(first);
    // Two purchases, and an intent that was not sent but may have been.
    team.run(1, &WAIT).ends_with(7);
    assert_eq!(team.agree(), (5, 1));
}

#[test]
fn evicted_runner_leaves_its_batch_to_the_waiting_one() {
    let team = Team::new(2, 60);
    let leaves = team.run(0, &["--concurrency", "6"]).starts();
    wait_until("it buys", || team.charges().len() > 6);
    let waits = team.run(1, &WAIT).starts();
    kill(&leaves, "-TERM");
    let ended = Ended::wait_for(leaves);
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
    all_end(vec![waits], &[0]);
    assert_eq!(team.agree(), (60, 0));
}

/// The first runner halts at each point of its life. The second one takes over the batch and ends before the first continues or dies.
#[test]
fn halt_at_any_point_leaves_the_batch_to_the_next_runner() {
    let places = ["before-commit", "after-commit", "after-intent"];
    let points: Vec<String> =
        places.iter().flat_map(|place| (1..=7).map(move |number| format!("{place}:{number}"))).collect();
    // Each waits for a lease most of the time.
    std::thread::scope(|scope| {
        for some in points.chunks(4) {
            scope.spawn(move || some.iter().enumerate().for_each(|(number, point)| outlive(point, number % 2 == 0)));
        }
    });
}

fn outlive(point: &str, goes_on: bool) {
    let team = Team::new(2, 3);
    let (first, flag) = halted(&team, 0, point, &["--concurrency", "2"]);
    wait_until("it halts, or ends", || flag.exists() || team.charges().len() == 3);
    let second = team.run(1, &WAIT).ends();
    assert!(matches!(second.code, Some(0 | 7)), "{point}: {:?} {}", second.code, second.stderr);
    if goes_on {
        drop(std::fs::remove_file(&flag));
        let ended = Ended::wait_for(first);
        assert!(matches!(ended.code, Some(0 | 7 | 74)), "{point}: {:?} {}", ended.code, ended.stderr);
    } else {
        murdered(first);
    }
    team.agree();
    // An intent that the first withdrew is due again.
    let third = team.run(1, &WAIT).ends();
    assert!(matches!(third.code, Some(0 | 7)), "{point}: {:?} {}", third.code, third.stderr);
    let (charges, doubts) = team.agree();
    assert!(charges + doubts >= 3, "{point}: {charges} charges, {doubts} doubts");
}

/// It stalls for longer than its lease, another one finishes the batch, and it wakes up.
#[test]
fn runner_buys_nothing_after_its_lease() {
    for _ in 0..3 {
        let team = Team::new(2, 120);
        let sleeper = team.run(0, &["--concurrency", "10"]).starts();
        wait_until("it buys", || !team.charges().is_empty());
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..300)));
        kill(&sleeper, "-STOP");
        let other = team.run(1, &WAIT).ends();
        assert!(matches!(other.code, Some(0 | 7)), "{:?} {}", other.code, other.stderr);
        let before = team.database.sql("SELECT count(*) FROM shotlist.attempt");
        kill(&sleeper, "-CONT");
        let ended = Ended::wait_for(sleeper);
        assert_eq!(ended.code, Some(74), "{}", ended.stderr);
        assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.attempt"), before, "it bought something");
        team.agree();
    }
}

/// Exactly between the intent and the request: when it wakes up, it is too late to send.
#[test]
fn intent_is_not_sent_after_its_deadline() {
    let team = Team::new(1, 3);
    let (child, flag) = halted(&team, 0, "after-intent:1", &["--concurrency", "1"]);
    wait_until("it halts", || flag.exists());
    assert_eq!(team.agree(), (0, 1));
    std::thread::sleep(PAST_SENDING);
    std::fs::remove_file(&flag).expect("it goes on");
    let ended = Ended::wait_for(child);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(team.agree(), (3, 0));
    let states = "SELECT string_agg(state, ' ' ORDER BY id) FROM shotlist.attempt";
    assert_eq!(team.database.sql(states), "void completed completed completed", "a new intent for the first job");
}

/// The user may name the task of a killed runner as soon as its lease is over, and deny it once no response can come.
#[test]
fn doubt_of_a_killed_runner_is_resolved_in_two_steps() {
    let team = Team::new(2, 2);
    let places: Vec<String> = (1..=9).map(|number| format!("before-commit:{number}")).collect();
    let (child, flag) = halted(&team, 0, &places.join(","), &["--concurrency", "1", "--select", "j0"]);
    // Halts at each commit. The first one after the charge has the task ID.
    wait_until("the task ID is to be recorded", || {
        // Only an observed halt is released: the next one may have the task ID.
        let is_halted = flag.exists();
        let is_charged = is_halted && !team.charges().is_empty();
        if is_halted && !is_charged {
            std::fs::remove_file(&flag).expect("it goes on");
        }
        is_charged
    });
    let (_, task) = team.charges().remove(0);
    murdered(child);
    let is_recorded = team.database.sql("SELECT count(*) FROM shotlist.attempt WHERE task IS NOT NULL") == "1";
    assert!(!is_recorded, "the commit of the task ID is the one at which it halts");
    let resolve = |args: &[&str]| team.command(1, &[&["resolve", "m.yaml", "j0"], args].concat());
    resolve(&["--never-created"]).fails_with("batch-locked", 75);
    wait_until("the lease is over", || resolve(&["--never-created"]).ends().stderr.contains("runner-may-live"));
    resolve(&["--task", &task]).ends_with(0);
    team.run(1, &WAIT).ends_with(0);
    assert_eq!(team.agree(), (2, 0));
}

#[test]
fn never_created_is_refused_while_a_response_may_come() {
    let team = Team::new(2, 1);
    let (child, flag) = halted(&team, 0, "after-intent:1", &[]);
    wait_until("it halts", || flag.exists());
    murdered(child);
    let denies = || team.command(1, &["resolve", "m.yaml", "j0", "--never-created"]).ends();
    assert_eq!(denies().code, Some(75));
    wait_until("no response can come", || denies().code == Some(0));
    team.run(1, &[]).ends_with(0);
    assert_eq!(team.agree(), (1, 0));
}

/// Four machines with three batches each, twelve kills, and one machine that stalls for longer than its lease.
#[test]
fn twelve_batches_survive_twelve_kills() {
    let team = Team::of_batches(12, 50);
    let start = |batch: usize| team.prepared(batch % 4, Program::new(team.desks[batch].root(), &quick(&WAIT))).starts();
    let mut running: Vec<Child> = (0..12).map(start).collect();
    for _ in 0..12 {
        let before = team.charges().len();
        wait_until("some are bought", || team.charges().len() > before + 15);
        let victim = fastrand::usize(0..12);
        murdered(std::mem::replace(&mut running[victim], start(victim)));
    }
    let sleeper = running.pop().expect("a run");
    kill(&sleeper, "-STOP");
    let other = team.prepared(3, Program::new(team.desks[11].root(), &quick(&WAIT))).starts();
    // On a busy machine, others may stall for their short lease, too, and leave tasks to the next run.
    all_end(running, &[0, 1, 7, 74]);
    all_end(vec![other], &[0, 1, 7, 74]);
    kill(&sleeper, "-CONT");
    all_end(vec![sleeper], &[0, 1, 7, 74]);
    let open = "SELECT count(*) FROM shotlist.attempt WHERE state IN ('queued', 'in_progress')";
    all_end((0..12).map(start).collect(), &[0, 7]);
    assert_eq!(team.database.sql(open), "0", "every task was finished");
    let (charges, doubts) = team.agree();
    assert!(charges + doubts >= 600, "{charges} charged, {doubts} in doubt");
}

/// The slots of the account and the monthly limit apply to all batches together.
#[test]
fn limits_hold_over_all_batches() {
    let team = Team::of_batches(4, 15);
    for desk in &team.desks {
        let manifest = std::fs::read_to_string(desk.path("m.yaml")).expect("the manifest");
        desk.write("m.yaml", manifest.replace("jobs:\n", "budget: { month: 20.00 }\njobs:\n"));
    }
    team.command(0, &["limit", "set", "--slots", "8"]).ends_with(0);
    let started = team.all_at_once(&["--concurrency", "8"]);
    let codes: Vec<_> = started.into_iter().map(|child| Ended::wait_for(child).code).collect();
    assert!(codes.iter().all(|code| matches!(code, Some(0 | 3))) && codes.contains(&Some(3)), "{codes:?}");
    assert_eq!(team.agree(), (22, 0), "as many of $0.90 as fit into $20");
    let most = team.database.sql(
        "WITH changes AS (SELECT intended_us AS at, 1 AS by FROM shotlist.attempt
             UNION ALL SELECT (extract(epoch FROM (record::json ->> 'ended_at')::timestamptz) * 1000000)::bigint, -1 FROM shotlist.attempt
                 WHERE record::json ->> 'ended_at' IS NOT NULL)
         SELECT max(open) FROM (SELECT sum(by) OVER (ORDER BY at, by) AS open FROM changes) AS so_far",
    );
    assert!(most.parse::<u32>().expect("a number") <= 8, "{most} at once");
}

/// Not if it waits for its own tasks.
#[test]
fn runner_without_slot_tells_once() {
    let args = ["run", "m.yaml", "--yes", "--no-download", "--log-format", "json"];
    let told = |log: &str| log.matches("\"event\":\"waiting_for_runners\"").count();
    let team = Team::of_batches(2, 6);
    team.command(0, &["limit", "set", "--slots", "1"]).ends_with(0);
    let started: Vec<_> = (0..2).map(|desk| team.command(desk, &args).starts()).collect();
    let ended: Vec<Ended> = started.into_iter().map(Ended::wait_for).collect();
    assert!(ended.iter().all(|it| it.code == Some(0) && told(&it.stderr) <= 1), "{ended:?}");
    assert!(ended.iter().any(|it| told(&it.stderr) == 1), "{ended:?}");
    assert_eq!(team.agree(), (12, 0));
    let lone = Team::new(1, 6);
    lone.command(0, &["limit", "set", "--slots", "1"]).ends_with(0);
    assert_eq!(told(&lone.command(0, &args).ends_with(0).stderr), 0);
}

#[test]
fn manifest_with_a_shared_ledger_runs_on_a_database() {
    let team = Team::new(1, 1);
    let manifest = format!("ledger: shared\n{}", crate::team::jobs(1));
    std::fs::write(team.desks[0].path("m.yaml"), manifest).expect("a manifest");
    team.run(0, &[]).ends_with(0);
    assert_eq!(team.agree(), (1, 0));
}
