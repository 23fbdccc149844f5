//! Several runners at one batch: each holds it through a connection of its own, as on another machine.

use std::collections::HashSet;
use std::io::Write as _;
use std::time::Duration;

use super::OnAServer;
use super::suite::Fresh as _;
use super::suite::store::{batch, completed, intent_of, task};
use crate::domain::{Account, AttemptId, Digest, Usd};
use crate::ledger::{Event, Intent, Joining, LedgerError, LockedBatch, RunLimit, Sharing};
use crate::support::wait_until;

fn sharing(locked: &LockedBatch) -> &Sharing {
    locked.sharing().expect("several runners share it")
}

fn plan(jobs: &str, concurrency: i32) -> Joining {
    Joining {
        digest: Digest::of(jobs),
        concurrency,
        account: Account { service: "s".into(), key: "k".into() },
        is_same_account: false,
    }
}

/// What another runner has is not taken for what a crash left, and no one takes it.
#[test]
fn manifest_with_a_shared_ledger_runs_on_a_database() {
    let team = crate::team::Team::new(1, 1);
    let manifest = format!("ledger: shared\n{}", crate::team::jobs(1));
    std::fs::write(team.desks[0].path("m.yaml"), manifest).expect("a manifest");
    team.run(0, &[]).ends_with(0);
    assert_eq!(team.agree(), (1, 0));
}

#[tokio::test]
async fn several_runners_share_a_batch() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("")).await);
    sharing(&one).join(plan("a 1\n", 5)).await.expect("joined");
    let sent = one.intend(intent_of("a")).await.expect("an intent");
    let three = store.lock_regardless(&batch("")).await;
    assert_eq!((two.recovered(), three.recovered()), (0, 0), "its runner lives, and waits for the answer");
    assert!(matches!(two.intend(intent_of("a")).await, Err(LedgerError::Claimed(_))));
    one.record(sent, Event::Withdrawn).await.expect("recorded");
    let again = two.intend(intent_of("a")).await.expect("nothing was bought");
    two.accept(again, task("t")).await.expect("written");
    let late = three.accept(again, task("u")).await;
    assert!(matches!(late, Err(LedgerError::Claimed(_))), "only the sender has the answer: {late:?}");
    // What one of them did with a job since the first began is done, also for the runner that was to do it anew.
    two.record(again, completed()).await.expect("recorded");
    let retake = Intent { known: Some(again), ..intent_of("a") };
    assert!(matches!(three.intend(retake).await, Err(LedgerError::Claimed(_))));
    let others = sharing(&three).others(false).await.expect("counted");
    assert_eq!((others.alive, others.assigned, others.orphans), (2, 0, 0));
}

#[tokio::test]
async fn a_task_is_looked_after_by_one_runner() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("")).await);
    let sent = one.intend(intent_of("a")).await.expect("an intent");
    one.accept(sent, task("t")).await.expect("written");
    let taken = async |by: &LockedBatch| sharing(by).take_over(vec![sent]).await.expect("asked");
    assert_eq!(taken(&two).await, HashSet::new());
    assert_eq!(sharing(&two).others(false).await.expect("counted").assigned, 1);
    drop(one);
    // Leaving takes its time, and no one waits for it.
    for _ in 0..100 {
        if sharing(&two).others(false).await.expect("counted").orphans == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(taken(&two).await, HashSet::from([sent]));
    // The result of a task is written once. The second runner loses nothing.
    let three = store.lock_regardless(&batch("")).await;
    two.record(sent, completed()).await.expect("recorded");
    three.record(sent, completed()).await.expect("the same word");
    two.record(sent, completed())
        .await
        .expect("also by who looks after it: the first runner may have woken up meanwhile");
    let polls: Vec<u32> =
        store.ledger().history(&batch("")).await.expect("read").attempts().map(|attempt| attempt.polls).collect();
    assert_eq!(polls, [1]);
}

#[tokio::test]
async fn all_runners_of_a_batch_buy_by_one_plan() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("")).await);
    sharing(&one).join(plan("a 1\nb 2\n", 1)).await.expect("the first");
    let other = sharing(&two).join(plan("a 1\nb 3\nc 4\n", 1)).await;
    assert!(matches!(other, Err(LedgerError::OtherPlan)), "{other:?}");
    sharing(&two).join(plan("a 1\nb 2\n", 1)).await.expect("the same");
    let elsewhere = store.lock_regardless(&batch("other")).await;
    sharing(&elsewhere).join(plan("z 1\n", 1)).await.expect("another batch");
}

#[tokio::test]
async fn a_pause_is_for_all_runners_of_an_account() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("b")).await);
    for held in [&one, &two] {
        sharing(held).join(plan("", 9)).await.expect("joined");
    }
    let account = intent_of("a").account;
    sharing(&one).pause(&account, Duration::from_mins(1)).await.expect("written");
    sharing(&one).pause(&account, Duration::from_secs(1)).await.expect("a shorter one ends nothing");
    match two.intend(intent_of("a")).await {
        Err(LedgerError::Deferred(wait)) => assert!(wait > Duration::from_secs(1), "{wait:?}"),
        other => panic!("{other:?}"),
    }
    let other = Account { service: "other".into(), ..account };
    two.intend(Intent { account: other, ..intent_of("a") }).await.expect("another account");
}

async fn fill(held: &LockedBatch, name: &str, most: usize) -> Vec<AttemptId> {
    let mut taken = Vec::new();
    for number in 0..most {
        match held.intend(intent_of(&format!("{name}{number}"))).await {
            Ok(attempt) => taken.push(attempt),
            Err(LedgerError::Deferred(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    taken
}

/// As many as one runner was given are there for all, and who has fewer goes before who has more.
#[tokio::test]
async fn the_places_of_an_account_are_shared() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("b")).await);
    for held in [&one, &two] {
        sharing(held).join(plan("", 6)).await.expect("joined");
    }
    let first = fill(&one, "a", 9).await;
    assert_eq!(first.len(), 6, "nobody else wants any");
    assert_eq!(fill(&two, "b", 9).await.len(), 0, "all places are taken");
    for attempt in &first[..4] {
        one.record(*attempt, Event::Withdrawn).await.expect("recorded");
    }
    assert_eq!(fill(&one, "c", 9).await.len(), 1, "its share is three, and another waits");
    assert_eq!(fill(&two, "b", 9).await.len(), 3);
    assert_eq!(fill(&one, "d", 9).await.len(), 0);
}

#[tokio::test]
async fn one_run_limit_holds_for_all_runners() {
    let store = OnAServer::fresh();
    let (one, two) = (store.lock_regardless(&batch("")).await, store.lock_regardless(&batch("")).await);
    let earlier = one.intend(intent_of("earlier")).await.expect("an intent");
    one.accept(earlier, task("t")).await.expect("written");
    for held in [&one, &two] {
        sharing(held).join(plan("", 9)).await.expect("joined");
    }
    let run_limit = Some(RunLimit { name: "budget.run".into(), usd: Usd::from_micros(1_800_000) });
    let intent = |job: &str| Intent { run_limit: run_limit.clone(), ..intent_of(job) };
    let (first, second) = futures::join!(one.intend(intent("a")), two.intend(intent("b")));
    first.and(second).expect("both fit");
    for held in [&one, &two] {
        match held.intend(intent("c")).await {
            Err(LedgerError::OverLimit { name, used, .. }) => {
                assert_eq!((&*name, used.to_string()), ("budget.run", "1.80".to_owned()));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// The earlier attempt is no part of a run that begins in the same moment: its price must not be taken from the new run's sum.
#[tokio::test]
async fn run_that_begins_while_an_earlier_attempt_is_settled_has_spent_nothing() {
    let store = OnAServer::fresh();
    let one = store.lock_regardless(&batch("")).await;
    sharing(&one).join(plan("a 1\n", 1)).await.expect("joined");
    let earlier = one.intend(intent_of("a")).await.expect("an intent");
    let mut beginning = store.0.session();
    let mut input = beginning.stdin.take().expect("a pipe");
    let begin = "BEGIN; UPDATE shotlist.batch SET run_micros = 0, began = (SELECT max(id) FROM shotlist.attempt);\n";
    input.write_all(begin.as_bytes()).expect("a statement");
    let sessions = |condition: &str| {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND {condition}");
        store.0.sql(&sql) == "1"
    };
    wait_until("the run begins", || sessions("state = 'idle in transaction'"));
    let mut settled = std::pin::pin!(one.record(earlier, Event::Withdrawn));
    assert!(futures::poll!(settled.as_mut()).is_pending());
    wait_until("the other waits for the batch", || sessions("wait_event_type = 'Lock'"));
    input.write_all(b"COMMIT;\n").expect("a statement");
    drop(input);
    settled.await.expect("recorded");
    assert!(beginning.wait().expect("its end").success());
    assert_eq!(store.0.sql("SELECT run_micros FROM shotlist.batch"), "0");
}
