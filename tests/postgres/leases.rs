//! The lease of a batch, through the library: each runner has a separate connection, as on another machine.

use std::time::Duration;

use super::OnAServer;
use super::suite::Fresh as _;
use super::suite::store::{batch, completed, intent_of, states, task};
use crate::domain::{Account, AttemptId, AttemptState};
use crate::ledger::{Event, HoldError, Intent, LedgerError, LockedBatch};

/// Makes every runner's lease end as long ago as this many seconds.
fn expire_all(store: &OnAServer, seconds: u32) {
    let expire = "UPDATE shotlist.runner SET expired_us = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
    store.0.sql(&format!("{expire} - {seconds} * 1000000::bigint WHERE expired_us IS NULL AND ended_us IS NULL"));
}

/// Locks a batch by a new runner. Waits until the previous runner has released it.
async fn lock(store: &OnAServer, value: &str) -> LockedBatch {
    for _ in 0..500 {
        match store.ledger().lock(&batch(value)).await {
            Err(HoldError::Busy { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            locked => return locked.expect("the batch"),
        }
    }
    panic!("the batch stays locked");
}

#[tokio::test]
async fn live_runner_keeps_its_batch_on_every_machine() {
    let store = OnAServer::fresh();
    let first = store.ledger().lock(&batch("")).await.expect("the batch");
    let sent = first.intend(intent_of("a")).await.expect("an intent");
    match store.ledger().lock(&batch("")).await.map(|locked| locked.recovered()) {
        Err(HoldError::Busy { batch: busy, holder }) => {
            assert_eq!(busy, batch(""));
            assert!(holder.contains("last heartbeat"), "{holder}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(store.0.sql("SELECT count(*) FROM shotlist.runner"), "1", "a runner that waits is not registered");
    store.ledger().lock(&batch("other")).await.expect("another batch");
    first.accept(sent, task("t")).await.expect("its own response");
    drop(first);
    assert_eq!(lock(&store, "").await.recovered(), 0);
}

#[tokio::test]
async fn expired_runner_records_only_responses_to_its_submissions() {
    let store = OnAServer::fresh();
    let first = store.ledger().lock(&batch("")).await.expect("the batch");
    let sent = first.intend(intent_of("sent")).await.expect("an intent");
    let active = first.intend(intent_of("active")).await.expect("an intent");
    first.accept(active, task("t")).await.expect("recorded");
    expire_all(&store, 0);
    let second = store.ledger().lock(&batch("")).await.expect("the lease is over");
    assert_eq!(second.recovered(), 0, "the response may still come");
    assert!(matches!(first.intend(intent_of("new")).await, Err(LedgerError::LeaseExpired)));
    let started = first.record(active, Event::Started).await;
    assert!(matches!(started, Err(LedgerError::LeaseExpired)), "{started:?}");
    let expired = tokio::time::timeout(Duration::from_secs(10), first.lease_expired()).await;
    expired.expect("its run learns of it");
    assert!(matches!(second.intend(intent_of("sent")).await, Err(LedgerError::Claimed(_))));
    first.accept(sent, task("u")).await.expect("only it has the task ID");
    second.record(active, completed()).await.expect("its task now");
    let history = store.ledger().history(&batch("")).await.expect("read");
    assert_eq!(states(&history), [AttemptState::Queued, AttemptState::Completed]);
}

#[tokio::test]
async fn intent_of_an_expired_runner_is_in_doubt_in_the_end() {
    let store = OnAServer::fresh();
    let first = store.ledger().lock(&batch("")).await.expect("the batch");
    let sent = first.intend(intent_of("a")).await.expect("an intent");
    expire_all(&store, 60);
    let second = store.ledger().lock(&batch("")).await.expect("the lease is over");
    second.record(sent, Event::Found(task("t"))).await.expect("the user found its task");
    second.record(sent, Event::Undone(crate::domain::Declaration::Found)).await.expect("taken back");
    let denied = second.record(sent, Event::Denied).await;
    assert!(matches!(denied, Err(LedgerError::SenderMayLive { .. })), "{denied:?}");
    drop(second);
    store.0.sql("UPDATE shotlist.runner SET expired_us = expired_us - 200000000 WHERE expired_us IS NOT NULL");
    lock(&store, "").await.record(sent, Event::Denied).await.expect("no response can come");
}

/// As after a failover that lost a runner's registration: it registers again, and another has its batch.
#[tokio::test]
async fn intent_of_a_live_runner_without_its_batch_is_not_denied() {
    let store = OnAServer::fresh();
    let first = store.ledger().lock(&batch("")).await.expect("the batch");
    let sent = first.intend(intent_of("a")).await.expect("an intent");
    expire_all(&store, 0);
    let second = store.ledger().lock(&batch("")).await.expect("the lease is over");
    store.0.sql("UPDATE shotlist.runner SET expired_us = NULL");
    drop(second);
    let third = lock(&store, "").await;
    let denied = third.record(sent, Event::Denied).await;
    assert!(denied.is_err(), "the response may still come");
    first.accept(sent, task("t")).await.expect("it came");
    let history = store.ledger().history(&batch("")).await.expect("read");
    assert_eq!(states(&history), [AttemptState::Queued]);
}

#[tokio::test]
async fn pause_holds_for_all_runners_of_an_account() {
    let store = OnAServer::fresh();
    let (one, two) = (lock(&store, "").await, lock(&store, "b").await);
    let account = intent_of("a").account;
    one.pause(&account, Duration::from_mins(1)).await.expect("written");
    one.pause(&account, Duration::from_secs(1)).await.expect("a shorter one ends nothing");
    match two.intend(intent_of("a")).await {
        Err(LedgerError::Deferred(wait)) => assert!(wait > Duration::from_secs(1), "{wait:?}"),
        other => panic!("{other:?}"),
    }
    let other = Account { service: "other".into(), ..account };
    two.intend(Intent { account: other, ..intent_of("a") }).await.expect("another account");
}

async fn fill(held: &LockedBatch, name: &str) -> Vec<AttemptId> {
    let mut admitted = Vec::new();
    for number in 0..9 {
        match held.intend(intent_of(&format!("{name}{number}"))).await {
            Ok(attempt) => admitted.push(attempt),
            Err(LedgerError::Deferred(_) | LedgerError::SlotsTaken(_)) => break,
            Err(error) => panic!("{error}"),
        }
    }
    admitted
}

#[tokio::test]
async fn slots_are_divided_by_live_runners_and_never_exceeded() {
    let store = OnAServer::fresh();
    let one = lock(&store, "").await;
    assert_eq!(fill(&one, "unlimited").await.len(), 9, "no slots are set");
    for attempt in store.ledger().history(&batch("")).await.expect("read").attempts() {
        one.record(attempt.id, Event::Withdrawn).await.expect("recorded");
    }
    store.ledger().set_slots(Some(6)).await.expect("set");
    let first = fill(&one, "a").await;
    assert_eq!(first.len(), 6, "no other runner is live");
    let two = lock(&store, "b").await;
    assert_eq!(fill(&two, "b").await.len(), 0, "its share is taken until tasks end");
    for attempt in &first[..4] {
        one.record(*attempt, Event::Withdrawn).await.expect("recorded");
    }
    assert_eq!(fill(&one, "c").await.len(), 1, "half of six");
    assert_eq!(fill(&two, "d").await.len(), 3);
    assert_eq!(fill(&one, "e").await.len(), 0);
}

/// An owner of the tables can do anything. A change that loses rows is found before money is spent.
#[tokio::test]
async fn altered_tables_are_refused_before_a_submission() {
    for change in [
        "DROP INDEX shotlist.attempt_sent_once",
        "DROP INDEX shotlist.attempt_at_the_service; CREATE UNIQUE INDEX attempt_at_the_service ON shotlist.attempt (id)",
        "ALTER TABLE shotlist.attempt ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE shotlist.batch ADD COLUMN extra text",
        "ALTER TABLE shotlist.spent ALTER COLUMN micros TYPE integer",
        "CREATE RULE swallow AS ON INSERT TO shotlist.attempt DO INSTEAD NOTHING",
        SWALLOW,
    ] {
        let store = OnAServer::fresh();
        drop(lock(&store, "").await);
        store.0.sql(change);
        match store.ledger().lock(&batch("b")).await {
            Err(HoldError::Unavailable(error)) => assert_eq!(error.to_string(), ALTERED, "{change}"),
            other => panic!("{change}: {other:?}"),
        }
    }
    let store = OnAServer::fresh();
    drop(lock(&store, "").await);
    store.0.sql("CREATE INDEX by_model ON shotlist.attempt (model); CREATE VIEW shotlist.mine AS SELECT 1");
    lock(&store, "").await;
}

const ALTERED: &str =
    "the ledger's tables have other columns, unique indexes, triggers, rules, or row security than shotlist created";
/// A trigger that keeps new attempts out of the table.
const SWALLOW: &str = "CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER swallow BEFORE INSERT ON shotlist.attempt FOR EACH ROW EXECUTE FUNCTION swallow()";

#[tokio::test]
async fn intent_swallowed_by_a_new_trigger_is_refused() {
    let store = OnAServer::fresh();
    let locked = lock(&store, "").await;
    locked.intend(intent_of("a")).await.expect("an intent");
    store.0.sql(SWALLOW);
    let swallowed = locked.intend(intent_of("b")).await.expect_err("no row");
    let expected = "the database did not store what was written: a trigger or rule changes the ledger's tables";
    assert_eq!(swallowed.to_string(), expected);
    store.0.sql("DROP TRIGGER swallow ON shotlist.attempt");
    locked.intend(intent_of("b")).await.expect("nothing is left of it");
}

#[tokio::test]
async fn version_is_read_with_each_intent() {
    let store = OnAServer::fresh();
    let locked = lock(&store, "").await;
    store.0.sql("UPDATE shotlist.ledger SET version = 2");
    let refused = locked.intend(intent_of("a")).await.expect_err("another version");
    assert_eq!(refused.to_string(), "the ledger must have version 1, found 2");
}
