//! Runners that die, and runners that stand still and wake up when everybody thinks that they are dead.

use std::time::Duration;

use crate::support::{Ended, kill, wait_until};
use crate::team::{Team, all_end, murdered};

#[test]
fn what_a_killed_runner_bought_is_collected_by_the_others() {
    let team = Team::new(4, 200);
    let mut started = team.all_at_once(&[]);
    for _ in 0..2 {
        std::thread::sleep(Duration::from_millis(fastrand::u64(100..700)));
        murdered(started.remove(0));
    }
    // Whoever stays ends with all of it: done, or in doubt where the answer died with its runner.
    all_end(started, &[0, 7]);
    let (charges, doubts) = team.agree();
    let open = "SELECT count(*) FROM shotlist.attempt WHERE state IN ('queued', 'in_progress')";
    assert_eq!(team.database.sql(open), "0", "every task was taken over");
    assert!(charges + doubts >= 200, "{charges} charged, {doubts} in doubt: every job was somebody's");
}

/// Whoever is told to end leaves what it was about to buy to the others, and none of it is forgotten.
#[test]
fn what_an_interrupted_runner_left_is_bought_by_the_others() {
    let team = Team::new(3, 300);
    let mut started = team.all_at_once(&["--concurrency", "20"]);
    std::thread::sleep(Duration::from_millis(fastrand::u64(300..900)));
    let leaves = started.remove(0);
    kill(&leaves, "-TERM");
    let ended = Ended::of(leaves);
    assert!(matches!(ended.code, Some(143)), "{:?} {}", ended.code, ended.stderr);
    all_end(started, &[0]);
    assert_eq!(team.agree(), (300, 0));
}

/// One stands still for longer than everybody waits, and wakes up: what it was about to do is not its to do any more.
#[test]
fn a_runner_that_wakes_up_after_its_death_buys_nothing() {
    for _ in 0..3 {
        let team = Team::new(2, 200);
        let mut started = team.all_at_once(&[]);
        let is_known = "SELECT to_regclass('shotlist.runner') IS NOT NULL";
        let is_at_it = "SELECT count(*) FROM shotlist.runner WHERE name LIKE 'desk-0 %'";
        wait_until("it is at it", || team.database.sql(is_known) == "t" && team.database.sql(is_at_it) == "1");
        std::thread::sleep(Duration::from_millis(fastrand::u64(0..500)));
        let sleeper = started.remove(0);
        kill(&sleeper, "-STOP");
        all_end(started, &[0, 7]);
        let dead = "SELECT count(*) FROM shotlist.runner WHERE died_us IS NOT NULL AND name LIKE 'desk-0 %'";
        let is_dead = || team.database.sql(dead) == "1";
        if !is_dead() {
            // Nobody was left to notice: the next to come does.
            wait_until("its death is noticed", || {
                team.run(1, &[]).ends();
                is_dead()
            });
        }
        let before = team.database.sql("SELECT count(*) FROM shotlist.attempt");
        kill(&sleeper, "-CONT");
        let ended = Ended::of(sleeper);
        assert!(matches!(ended.code, Some(0 | 7 | 74)), "{:?} {}", ended.code, ended.stderr);
        assert_eq!(team.database.sql("SELECT count(*) FROM shotlist.attempt"), before, "it bought something");
        team.agree();
    }
}

/// Exactly between the intent and the request: when it wakes up, it is too late to send, and nothing was bought.
#[test]
fn an_intent_is_not_sent_once_its_deadline_is_over() {
    let team = Team::new(1, 3);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    assert_eq!(team.agree(), (0, 1));
    // A thirtieth of the ten seconds, and a little.
    std::thread::sleep(Duration::from_millis(600));
    std::fs::remove_file(&flag).expect("it goes on");
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(team.agree(), (3, 0));
    let states = "SELECT string_agg(state, ' ' ORDER BY id) FROM shotlist.attempt";
    assert_eq!(
        team.database.sql(states),
        "void completed completed completed",
        "the first was not sent, and bought anew"
    );
}

/// A doubt is settled by a person, but not while the answer may still come.
#[test]
fn nobody_says_never_created_while_the_sender_may_live() {
    let team = Team::new(2, 1);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &[]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    let denied = |code| team.command(1, &["resolve", "m.yaml", "j0", "--never-created"]).ends_with(code);
    let refused = denied(75);
    assert!(refused.stderr.contains("may still wait for the answer"), "{}", refused.stderr);
    // Somebody else puts it in doubt: its word is no proof that the sender is dead.
    team.database.sql("UPDATE shotlist.attempt SET state = 'in_doubt'");
    let refused = denied(75);
    assert!(refused.stderr.contains("desk-0") && refused.stderr.contains("may still live"), "{}", refused.stderr);
    murdered(child);
    wait_until("it is dead for as long as an answer may take", || {
        team.command(1, &["resolve", "m.yaml", "j0", "--never-created"]).ends().code == Some(0)
    });
    team.run(1, &[]).ends_with(0);
    assert_eq!(team.agree(), (1, 0));
}
