//! One runner at a batch, and what it leaves.

use jiff::Timestamp;

use super::store::{Fresh, batch, intent_of, states, task};
use crate::domain::{AttemptState, Usd};
use crate::ledger::{Event, HoldError, LedgerError};

/// Reading makes no ledger, and finds nothing.
pub(in crate::ledger) async fn nothing_is_there_before_it_is_made<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    assert_eq!(states(&ledger.history(&batch("")).await.expect("read")), []);
    assert_eq!(ledger.used_since(Timestamp::MIN, None).await.expect("read"), Usd::ZERO);
    assert!(ledger.spending(Timestamp::MIN).await.expect("read").is_empty());
    assert!(ledger.submissions(|_| true).await.expect("read").is_empty());
    assert!(ledger.open_elsewhere(&batch("")).await.expect("read").is_empty());
    assert!(ledger.bought_elsewhere(&batch(""), || vec![intent_of("a").normalized]).await.expect("read").is_empty());
    assert_eq!(ledger.controls().await.expect("read").freeze, None);
    assert_eq!(ledger.find_task(&task("t").id).await.expect("read"), None);
}

pub(in crate::ledger) async fn one_runner_holds_a_batch_at_a_time<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("a")).await.expect("the batch");
    match ledger.lock(&batch("a")).await.map(|held| held.recovered()) {
        Err(HoldError::Busy { batch: busy, holder }) => {
            assert_eq!(busy, batch("a"));
            assert!(!holder.is_empty());
        }
        other => panic!("{other:?}"),
    }
    ledger.lock(&batch("b")).await.expect("another batch");
    drop(held);
    ledger.lock(&batch("a")).await.expect("the batch again");
}

/// Also of a runner that was dropped half-way, an intent without an answer is a doubt, and only of the batch that is held.
pub(in crate::ledger) async fn who_drops_a_batch_leaves_what_a_kill_leaves<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("a")).await.expect("the batch");
    held.intend(intent_of("sent")).await.expect("an intent");
    let taken = held.intend(intent_of("taken")).await.expect("an intent");
    held.accept(taken, task("t")).await.expect("written");
    drop(held);
    let other = ledger.lock(&batch("b")).await.expect("another batch");
    assert_eq!(other.recovered(), 0);
    let seen = ledger.history(&batch("a")).await.expect("read");
    assert_eq!(states(&seen), [AttemptState::Intended, AttemptState::Queued]);
    let again = ledger.lock(&batch("a")).await.expect("the batch again");
    assert_eq!(again.recovered(), 1);
    let seen = ledger.history(&batch("a")).await.expect("read");
    assert_eq!(states(&seen), [AttemptState::InDoubt, AttemptState::Queued]);
    drop(again);
    assert_eq!(ledger.lock(&batch("a")).await.expect("once more").recovered(), 0);
}

pub(in crate::ledger) async fn a_write_that_fails_says_why_and_spares_the_others<S: Fresh>() {
    let store = S::fresh();
    let held = store.ledger().lock(&batch("")).await.expect("the batch");
    let attempt = held.intend(intent_of("a")).await.expect("an intent");
    let (illegal, legal) = futures::join!(held.record(attempt, Event::Started), held.record(attempt, Event::Withdrawn));
    assert!(matches!(illegal, Err(LedgerError::Illegal(_))), "{illegal:?}");
    legal.expect("it was fine");
}
