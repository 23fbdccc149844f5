//! Any order of events, with anything in it.

use std::collections::HashSet;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::store::{Fresh, batch, intent_of};
use crate::domain::{Attempt, AttemptState, Charge, JobId, ServiceError, TaskId, TaskNames, Usd};
use crate::ledger::{Event, LedgerError, LockedBatch};

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".*".prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::hash_map(".{0,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// JSON in so many lists.
fn deep(depth: usize) -> Value {
    (0..depth).fold(json!("in the middle"), |inner, _| json!([inner]))
}

fn any_error() -> impl Strategy<Value = ServiceError> {
    let raw = prop_oneof![4 => any_json(), 1 => (100..140_usize).prop_map(deep)];
    (".*", proptest::option::of(".*"), raw).prop_map(|(message, code, raw)| ServiceError { message, code, raw })
}

/// The ways of an attempt that write what came from outside.
fn any_life() -> impl Strategy<Value = Vec<Event>> {
    let name = || ".*[a-z]".prop_map(|id| TaskId::new(id).expect("an id"));
    let task = move || (name(), proptest::option::of(name())).prop_map(|(id, alias)| TaskNames { id, alias });
    let ended_at = Timestamp::UNIX_EPOCH;
    prop_oneof![
        any_error().prop_map(|error| vec![Event::Refused(error)]),
        any_error().prop_map(|error| vec![Event::Doubted(error)]),
        (any_error(), task()).prop_map(|(error, task)| vec![Event::Doubted(error), Event::Found(task)]),
        (any_error(), task()).prop_map(|(error, task)| vec![Event::Doubted(error), Event::Accepted(task)]),
        task().prop_map(|task| vec![Event::Accepted(task), Event::Started, Event::Left { polls: 1 }]),
        (task(), name()).prop_map(|(task, name)| vec![Event::Accepted(task), Event::AlsoNamed(name), Event::GivenUp]),
        (task(), any_error())
            .prop_map(move |(task, error)| vec![Event::Accepted(task), Event::Failed { error, ended_at, polls: 1 }]),
        (task(), ".*", ".*").prop_map(move |(task, url, other)| vec![
            Event::Accepted(task),
            Event::Completed { video_url: url, ended_at, polls: 1 },
            Event::Relinked { video_url: other },
        ]),
    ]
}

/// Lives of jobs, written down one after the other; what of them was written.
async fn lived(held: &LockedBatch, lives: &[Vec<Event>]) {
    for (number, life) in lives.iter().enumerate() {
        let attempt = held.intend(intent_of(&format!("j{number}"))).await.expect("an intent");
        for event in life {
            match held.record(attempt, event.clone()).await {
                // Two of these tasks have the same name by chance. Until that is recorded, every intent is deferred.
                Err(LedgerError::TaskTaken { .. }) => {
                    if matches!(event, Event::Accepted(_)) {
                        held.record(attempt, Event::Doubted(ServiceError::default())).await.expect("recorded");
                    }
                    break;
                }
                recorded => recorded.expect("recorded"),
            }
        }
    }
}

/// Checks something for many lists of lives; the shortest list that breaks it is reported.
async fn for_any_lives<F: Future<Output = ()>>(cases: u32, check: impl Fn(Vec<Vec<Event>>) -> F + Send + 'static) {
    // A thread that may block: the runner calls no asynchronous code.
    let checked = tokio::task::spawn_blocking(move || {
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) };
        let lives = proptest::collection::vec(any_life(), 1..12);
        proptest::test_runner::TestRunner::new(config).run(&lives, |lives| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(check(lives));
            Ok(())
        })
    });
    if let Err(broken) = checked.await.expect("the runner") {
        panic!("{broken}");
    }
}

/// One answer of the service must never make a ledger unreadable, whatever is in it.
pub(in crate::ledger) async fn whatever_the_service_says_is_read_back<S: Fresh>() {
    for_any_lives(64, |lives| async move {
        let store = S::fresh();
        let ledger = store.ledger();
        lived(&ledger.lock(&batch("")).await.expect("the batch"), &lives).await;
        let read = ledger.history(&batch("")).await.expect("every attempt can be read");
        assert_eq!(read.attempts().count(), lives.len());
        // Its task had the name of another by chance, so its life ended with that.
        let is_cut = |(attempt, life): &(&Attempt, &Vec<Event>)| {
            attempt.state == AttemptState::InDoubt && matches!(life[0], Event::Accepted(_))
        };
        for (attempt, life) in read.attempts().zip(&lives).filter(|one| !is_cut(one)) {
            if let [Event::Refused(error) | Event::Doubted(error)] | [_, Event::Failed { error, .. }] = life.as_slice()
                && let Some(shown) = &attempt.error
            {
                let is_kept = **shown == *error || shown.raw.as_str().is_some_and(|raw| raw.contains("in the middle"));
                assert!(is_kept, "{error:?} became {shown:?}");
            }
        }
    })
    .await;
}

/// The sums are those of the attempts, whatever became of them.
pub(in crate::ledger) async fn the_books_add_up<S: Fresh>() {
    for_any_lives(16, |lives| async move {
        let store = S::fresh();
        let ledger = store.ledger();
        lived(&ledger.lock(&batch("")).await.expect("the batch"), &lives).await;
        let history = ledger.history(&batch("")).await.expect("read");
        let cost = |wanted: fn(&&Attempt) -> bool| history.attempts().filter(wanted).map(Attempt::cost).sum::<Usd>();
        let used = ledger.used_since(Timestamp::UNIX_EPOCH, None).await.expect("read");
        assert_eq!(used, cost(|attempt| attempt.charge() != Charge::None));
        let books = ledger.spending(Timestamp::UNIX_EPOCH).await.expect("read");
        let sum =
            |charge: Charge| books.iter().filter(|line| line.charge == charge).map(|line| line.price).sum::<Usd>();
        assert_eq!(sum(Charge::Charged), cost(|attempt| attempt.charge() == Charge::Charged));
        assert_eq!(sum(Charge::Unknown), cost(|attempt| attempt.charge() == Charge::Unknown));
        assert_eq!(books.iter().map(|line| line.attempts as usize).sum::<usize>(), lives.len());
        let jobs: HashSet<JobId> = history.attempts().map(|attempt| attempt.job.clone()).collect();
        assert_eq!(jobs.len(), lives.len());
    })
    .await;
}
