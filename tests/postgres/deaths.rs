//! Runners that die, and runners that halt and wake up when everybody thinks that they are dead.

use std::path::Path;
use std::process::Child;
use std::time::Duration;

use crate::support::{Ended, kill, wait_until};
use crate::team::{Team, all_end, murdered};

/// After this an intent is too old to be sent: a thirtieth of the ten seconds, and a little.
const PAST_SENDING: Duration = Duration::from_millis(600);

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

/// A runner that must end leaves its due jobs to the others.
/// A runner that ends with tasks completed and videos not downloaded leaves them to the others.
#[test]
fn videos_that_a_runner_left_are_downloaded_by_the_others() {
    let team = Team::new(2, 100);
    let args =
        ["run", "m.yaml", "--yes", "--quiet", "--concurrency", "4", "--first-poll", "0s", "--poll-interval", "100ms"];
    let leaves = team.run(0, &["--concurrency", "4"]).starts();
    wait_until("it buys", || !team.charges().is_empty());
    let stays = team.command(1, &args).starts();
    let is_there = "SELECT count(*) FROM shotlist.runner WHERE name LIKE 'desk-1 %'";
    wait_until("both are at it", || team.database.sql(is_there) == "1");
    // What it completes from here on is in no plan of the other.
    let completed = "SELECT count(*) FROM shotlist.attempt JOIN shotlist.runner ON runner.id = attempt.runner
         WHERE state = 'completed' AND name LIKE 'desk-0 %'";
    let completed = || team.database.sql(completed).parse::<u32>().expect("a count");
    let before = completed();
    wait_until("it has completed more", || completed() > before + 4);
    murdered(leaves);
    let ended = Ended::of(stays);
    assert!(matches!(ended.code, Some(0 | 7)), "{:?} {}", ended.code, ended.stderr);
    let open = "SELECT count(*) FROM shotlist.attempt WHERE needs_download";
    assert_eq!(team.database.sql(open), "0", "{}", ended.stderr);
}

#[test]
fn what_an_interrupted_runner_left_is_bought_by_the_others() {
    let team = Team::new(3, 300);
    let mut started = team.all_at_once(&["--concurrency", "20"]);
    let sent = "SELECT count(*) FROM shotlist.attempt JOIN shotlist.runner ON runner.id = attempt.runner WHERE name LIKE 'desk-0 %'";
    let exists = "SELECT to_regclass('shotlist.attempt') IS NOT NULL";
    wait_until("it buys", || team.database.sql(exists) == "t" && team.database.sql(sent) != "0");
    std::thread::sleep(Duration::from_millis(fastrand::u64(0..600)));
    let leaves = started.remove(0);
    kill(&leaves, "-TERM");
    let ended = Ended::of(leaves);
    assert!(matches!(ended.code, Some(143)), "{:?} {}", ended.code, ended.stderr);
    all_end(started, &[0]);
    assert_eq!(team.agree(), (300, 0));
}

/// Ends a runner that halts behind an intent, once that is too old to be sent.
fn is_interrupted_unsent(runner: Child, stands_at: &Path) {
    kill(&runner, "-TERM");
    std::thread::sleep(PAST_SENDING);
    std::fs::remove_file(stands_at).expect("it goes on");
    let ended = Ended::of(runner);
    assert_eq!(ended.code, Some(143), "{}", ended.stderr);
}

/// Jobs that an interrupted runner was about to send are submitted by others once it releases them.
#[test]
fn what_an_interrupted_runner_lets_go_is_bought_by_who_had_seen_it_taken() {
    let team = Team::new(2, 2);
    let halts_at_its_first = |desk: usize| {
        let flag = team.desks[desk].path("halted");
        let run = team.run(desk, &["--concurrency", "2"]).env("SHOTLIST_HALT_AT", "after-intent:1");
        let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
        wait_until("it stands still", || flag.exists());
        (child, flag)
    };
    // The first found both jobs to be due, and is at one of them; the second is at the other.
    let (stays, stays_at) = halts_at_its_first(0);
    let (leaves, leaves_at) = halts_at_its_first(1);
    std::fs::remove_file(stays_at).expect("it goes on");
    let is_done = "SELECT count(*) FROM shotlist.attempt WHERE state = 'completed'";
    wait_until("the first has done its own", || team.database.sql(is_done) == "1");
    is_interrupted_unsent(leaves, &leaves_at);
    all_end(vec![stays], &[0]);
    assert_eq!(team.agree(), (2, 0));
    let states = "SELECT string_agg(state, ' ' ORDER BY id) FROM shotlist.attempt WHERE job = 'j1'";
    assert_eq!(team.database.sql(states), "void completed");
}

/// What one run could not buy because another was at it, and what that one then let go, is no job that could not be bought.
#[test]
fn what_was_let_go_is_bought_by_who_had_tried_in_vain() {
    let team = Team::new(2, 1);
    for desk in &team.desks {
        desk.write("look.png", b"\x89PNG\r\n\x1a\n");
        desk.write(
            "m.yaml",
            "version: 1\njobs: [{ id: j0, model: alpha-2, prompt: it turns, image_file: look.png }]\n",
        );
    }
    // At the first desk the asset command fails once, then waits until a runner of the other desk has the job, then answers at once.
    let (first, second) = (&team.desks[0], &team.desks[1]);
    let fails = "if [ ! -e failed ]; then touch failed; exit 1; fi";
    let waits = "if [ ! -e waited ]; then touch waited asked; while [ -e asked ]; do sleep 0.02; done; fi";
    let slow = format!("{fails}\n{waits}\necho https://pictures.example/1\n");
    first.write("slow", slow);
    second.write("quick", "echo https://pictures.example/2\n");
    let stays = team.run(0, &["--asset-command", "sh slow"]).starts();
    wait_until("it tries again what had failed", || first.path("asked").exists());
    let flag = second.path("halted");
    let leaves = team.run(1, &["--asset-command", "sh quick"]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let leaves = leaves.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    std::fs::remove_file(first.path("asked")).expect("it goes on");
    let looks = "SELECT writes FROM shotlist.runner WHERE name LIKE 'desk-0 %'";
    let looks = || team.database.sql(looks).parse::<u32>().expect("a number");
    let before = looks();
    wait_until("it has tried in vain, and waits for the other", || looks() > before + 9);
    is_interrupted_unsent(leaves, &flag);
    all_end(vec![stays], &[0]);
    let states = "SELECT string_agg(state, ' ' ORDER BY id) FROM shotlist.attempt";
    assert_eq!(team.database.sql(states), "void completed");
}

/// One halts for longer than everybody waits, and wakes up: what it was about to do is not its to do any more.
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
        let dead = "SELECT count(*) FROM shotlist.runner WHERE expired_us IS NOT NULL AND name LIKE 'desk-0 %'";
        let is_noticed = || team.database.sql(dead) == "1";
        if !is_noticed() {
            // No one was left to notice: the next to come does.
            wait_until("its death is noticed", || {
                team.run(1, &[]).ends();
                is_noticed()
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
    std::thread::sleep(PAST_SENDING);
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

/// A doubt is settled by the user, but not while the answer may still come.
#[test]
fn no_one_says_never_created_while_the_sender_may_live() {
    let team = Team::new(2, 1);
    let flag = team.desks[0].path("halted");
    let run = team.run(0, &[]).env("SHOTLIST_HALT_AT", "after-intent:1");
    let child = run.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    let denied = |code| team.command(1, &["resolve", "m.yaml", "j0", "--never-created"]).ends_with(code);
    denied(75).shows("runner-may-live");
    // Someone else puts it in doubt: its word is no proof that the sender is dead.
    team.database.sql(
        "UPDATE shotlist.attempt SET state = 'in_doubt', record = (record::jsonb || '{\"state\": \"in_doubt\"}')::text",
    );
    let refused = denied(75);
    assert!(refused.shows("runner-may-live").stderr.contains("desk-0"));
    murdered(child);
    wait_until("it is dead for as long as an answer may take", || {
        team.command(1, &["resolve", "m.yaml", "j0", "--never-created"]).ends().code == Some(0)
    });
    team.run(1, &[]).ends_with(0);
    assert_eq!(team.agree(), (1, 0));
}
