//! One runner at a batch, owners of tasks, and purchases elsewhere.

use jiff::Timestamp;

use super::store::{Fresh, batch, completed, intent_of, states, task};
use crate::domain::{Account, AttemptState, BatchKey, OutputPath, ServiceError, TaskNames, Usd, VideoFile};
use crate::ledger::{Event, HoldError, LedgerError, this_machine};

pub(in crate::ledger) async fn task_belongs_to_one_attempt<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let (first, second) = (held.intend(intent_of("a")).await, held.intend(intent_of("b")).await);
    let (first, second) = (first.expect("an intent"), second.expect("an intent"));
    held.accept(first, TaskNames { id: task("t").id, alias: Some(task("also").id) }).await.expect("written");
    for taken in ["t", "also"] {
        let refused = held.accept(second, task(taken)).await;
        assert!(matches!(refused, Err(LedgerError::TaskTaken { .. })), "{taken}: {refused:?}");
    }
    let names = held.accept(second, TaskNames { id: task("u").id, alias: Some(task("also").id) }).await;
    assert_eq!(names.expect("written"), task("u"), "a second name of another's is left out");
    for (name, owner) in [("t", Some("a")), ("also", Some("a")), ("u", Some("b")), ("v", None)] {
        let found = ledger.find_task(&task(name).id).await.expect("read").map(|(job, _)| job.to_string());
        assert_eq!(found.as_deref(), owner, "{name}");
    }
    // A repeated response after a lost acknowledgment.
    assert_eq!(held.accept(second, task("u")).await.expect("known"), task("u"));
}

pub(in crate::ledger) async fn reassign_changes_active_tasks_only<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let open = held.intend(intent_of("open")).await.expect("an intent");
    held.accept(open, task("t")).await.expect("written");
    let gone = held.intend(intent_of("gone")).await.expect("an intent");
    held.record(gone, Event::Refused(ServiceError::default())).await.expect("recorded");
    let account = Account { service: "s".into(), key: "new".into() };
    held.reassign(&account).await.expect("written");
    let history = ledger.history(&batch("")).await.expect("read");
    let keys: Vec<String> = history.attempts().map(|attempt| attempt.account.key.to_string()).collect();
    assert_eq!(keys, ["new", "k"]);
}

fn fetched() -> Event {
    Event::Fetched(VideoFile {
        path: OutputPath::new("a.mp4").expect("a path"),
        sha256: String::new(),
        bytes: 1,
        footage: None,
    })
}

pub(in crate::ledger) async fn open_work_elsewhere_is_reported<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("yesterday")).await.expect("the batch");
    let open = held.intend(intent_of("open")).await.expect("an intent");
    held.accept(open, task("t")).await.expect("written");
    let doubt = held.intend(intent_of("doubt")).await.expect("an intent");
    held.record(doubt, Event::Doubted(ServiceError::default())).await.expect("recorded");
    for (job, event) in [("unfetched", None), ("fetched", Some(fetched()))] {
        let attempt = held.intend(intent_of(job)).await.expect("an intent");
        held.accept(attempt, task(job)).await.expect("written");
        for event in [Some(completed()), event].into_iter().flatten() {
            held.record(attempt, event).await.expect("recorded");
        }
    }
    held.intend(intent_of("unanswered")).await.expect("an intent");
    assert!(ledger.open_elsewhere(&batch("yesterday")).await.expect("read").is_empty(), "its own");
    let other = BatchKey { name: "other".into(), batch: String::new() };
    assert!(ledger.open_elsewhere(&other).await.expect("read").is_empty(), "of another name");
    let open = ledger.open_elsewhere(&batch("today")).await.expect("read");
    let shown: Vec<_> = open
        .iter()
        .map(|open| (&*open.batch.batch, open.active, open.doubtful, open.unanswered, open.unfetched, open.at_risk))
        .collect();
    assert_eq!(shown, [("yesterday", 1, 1, 1, 1, Usd::from_micros(900_000))]);
}

pub(in crate::ledger) async fn purchase_under_another_name_is_found<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("one")).await.expect("the batch");
    for (job, event) in [("bought", Event::Accepted(task("t"))), ("refused", Event::Refused(ServiceError::default()))] {
        let attempt = held.intend(intent_of(job)).await.expect("an intent");
        held.record(attempt, event).await.expect("recorded");
    }
    let requests = || ["bought", "refused", "never"].map(|job| intent_of(job).normalized).to_vec();
    for own in ["one", "two"] {
        let found = ledger.bought_elsewhere(&batch(own), requests).await.expect("read");
        assert!(found.is_empty(), "another batch is meant to buy again: {own}");
    }
    let all = ledger.submissions(|_| true).await.expect("read");
    let shown: Vec<_> = all.iter().map(|(key, attempt)| (key.clone(), attempt.job().as_str())).collect();
    assert_eq!(shown, [(batch("one"), "bought"), (batch("one"), "refused")]);
    assert_eq!(ledger.submissions(|_| false).await.expect("read").len(), 1, "the first of the account");
    // The last one lost its batch value.
    for key in [BatchKey { name: "m".into(), batch: String::new() }, batch(" One "), batch("")] {
        let found = ledger.bought_elsewhere(&key, requests).await.expect("read");
        let shown: Vec<_> =
            found.iter().map(|bought| (bought.batch.clone(), bought.attempt.job().to_string(), bought.jobs)).collect();
        assert_eq!(shown, [(batch("one"), "bought".to_owned(), 1)]);
    }
}

pub(in crate::ledger) async fn video_is_recorded_with_its_machine<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.lock(&batch("")).await.expect("the batch");
    let attempt = held.intend(intent_of("a")).await.expect("an intent");
    held.accept(attempt, task("t")).await.expect("written");
    for event in [completed(), fetched()] {
        held.record(attempt, event).await.expect("recorded");
    }
    let history = ledger.history(&batch("")).await.expect("read");
    let by = history.attempts().next().and_then(|attempt| attempt.particulars.fetched_by.clone());
    assert_eq!(by.as_deref(), Some(this_machine()));
}

/// Reading creates no ledger, and returns nothing.
pub(in crate::ledger) async fn missing_ledger_is_empty_and_not_created<S: Fresh>() {
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

pub(in crate::ledger) async fn batch_has_one_runner_at_a_time<S: Fresh>() {
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

/// A dropped runner leaves its intent without a response in doubt, but only in the locked batch.
pub(in crate::ledger) async fn dropped_batch_is_like_that_of_a_killed_run<S: Fresh>() {
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

pub(in crate::ledger) async fn illegal_event_fails_alone<S: Fresh>() {
    let store = S::fresh();
    let held = store.ledger().lock(&batch("")).await.expect("the batch");
    let attempt = held.intend(intent_of("a")).await.expect("an intent");
    let (illegal, legal) = futures::join!(held.record(attempt, Event::Started), held.record(attempt, Event::Withdrawn));
    assert!(matches!(illegal, Err(LedgerError::Illegal(_))), "{illegal:?}");
    legal.expect("it was fine");
}
