//! What every store of the ledger has to keep, written against its door alone. [`for_store`] runs all of it on one store.

use std::collections::HashSet;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Event, HeldBatch, HoldError, Intent, Ledger, LedgerError, SpendLimit};
use crate::domain::{
    Account, Attempt, AttemptId, AttemptState, BatchKey, Charge, History, JobId, ServiceError, TaskId, TaskNames, Usd,
};

/// A store that was made for one test, and is gone with it.
pub(super) trait Fresh {
    type Ledger: Ledger;
    /// An empty one.
    fn fresh() -> Self;
    /// The way into it.
    fn ledger(&self) -> Self::Ledger;
    /// Takes a batch although another runner has it, as where nothing can tell that it lives.
    fn hold_regardless(&self, batch: &BatchKey) -> <Self::Ledger as Ledger>::Held;
}

/// Makes a test of each part of the suite, on one store.
macro_rules! for_store {
    ($store:ty: $($part:ident)*) => { $(
        #[tokio::test]
        async fn $part() {
            crate::ledger::suite::$part::<$store>().await;
        }
    )* };
    ($store:ty) => { crate::ledger::suite::for_store! { $store:
        nothing_is_there_before_it_is_made
        one_runner_holds_a_batch_at_a_time
        who_drops_a_batch_leaves_what_a_kill_leaves
        two_runners_at_once_do_not_buy_one_job_twice
        a_write_that_fails_says_why_and_spares_the_others
        a_limit_over_all_batches_is_kept_where_the_intent_is_written
        a_task_belongs_to_one_attempt
        only_tasks_that_can_be_asked_about_change_their_account
        what_is_open_elsewhere_is_told
        what_was_bought_under_another_name_is_found
        whatever_the_service_says_is_read_back
        the_books_add_up
    } };
}
pub(super) use for_store;

fn batch(batch: &str) -> BatchKey {
    BatchKey { name: "n".into(), batch: batch.into() }
}

fn task(id: &str) -> TaskNames {
    TaskId::new(id).expect("an id").into()
}

fn completed() -> Event {
    Event::Completed { video_url: "u".into(), ended_at: Timestamp::UNIX_EPOCH, polls: 1 }
}

fn states(history: &History) -> Vec<AttemptState> {
    history.attempts().map(|attempt| attempt.state).collect()
}

/// Reading makes no ledger, and finds nothing.
pub(super) async fn nothing_is_there_before_it_is_made<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    assert_eq!(states(&ledger.history(&batch("")).await.expect("read")), []);
    assert_eq!(ledger.used_since(Timestamp::MIN).await.expect("read"), Usd::ZERO);
    assert!(ledger.spending(Timestamp::MIN).await.expect("read").is_empty());
    assert!(ledger.open_elsewhere(&batch("")).await.expect("read").is_empty());
    assert!(
        ledger.bought_under_other_names("m", vec![Intent::of_job("a").fingerprint]).await.expect("read").is_empty()
    );
    assert!(ledger.known_tasks(vec![task("t").id]).await.expect("read").is_empty());
    assert_eq!(ledger.owner(&task("t").id).await.expect("read"), None);
}

pub(super) async fn one_runner_holds_a_batch_at_a_time<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("a")).await.expect("the batch");
    match ledger.hold(&batch("a")).await.map(|held| held.concluded()) {
        Err(HoldError::Busy { batch: busy, holder }) => {
            assert_eq!(busy, batch("a"));
            assert!(!holder.is_empty());
        }
        other => panic!("{other:?}"),
    }
    ledger.hold(&batch("b")).await.expect("another batch");
    drop(held);
    ledger.hold(&batch("a")).await.expect("the batch again");
}

/// Also of a runner that was dropped half-way, an intent without an answer is a doubt, and only of the batch that is held.
pub(super) async fn who_drops_a_batch_leaves_what_a_kill_leaves<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("a")).await.expect("the batch");
    held.intend(Intent::of_job("sent")).await.expect("an intent");
    let taken = held.intend(Intent::of_job("taken")).await.expect("an intent");
    held.accept(taken, task("t")).await.expect("written");
    drop(held);
    let other = ledger.hold(&batch("b")).await.expect("another batch");
    assert_eq!(other.concluded(), 0);
    let seen = ledger.history(&batch("a")).await.expect("read");
    assert_eq!(states(&seen), [AttemptState::Intended, AttemptState::Queued]);
    let again = ledger.hold(&batch("a")).await.expect("the batch again");
    assert_eq!(again.concluded(), 1);
    let seen = ledger.history(&batch("a")).await.expect("read");
    assert_eq!(states(&seen), [AttemptState::InDoubt, AttemptState::Queued]);
    drop(again);
    assert_eq!(ledger.hold(&batch("a")).await.expect("once more").concluded(), 0);
}

/// Two runners of one batch, as where a lock is of no use: the second buys nothing that the first is at, or has bought
/// since the second made its plan.
pub(super) async fn two_runners_at_once_do_not_buy_one_job_twice<S: Fresh>() {
    let store = S::fresh();
    let (first, second) = (store.hold_regardless(&batch("")), store.hold_regardless(&batch("")));
    let intent = |known| Intent { known, ..Intent::of_job("a") };
    let is_claimed = |result: Result<AttemptId, LedgerError>| matches!(result, Err(LedgerError::Claimed(_)));

    let attempt = first.intend(intent(None)).await.expect("the first intent");
    assert!(is_claimed(second.intend(intent(None)).await), "while the first is sending");
    first.record(attempt, Event::Accepted(task("t"))).await.expect("recorded");
    assert!(is_claimed(second.intend(intent(None)).await), "while the task is at the service");
    first.record(attempt, completed()).await.expect("recorded");
    assert!(is_claimed(second.intend(intent(None)).await), "after it was completed");
    // One that knows of it and wants it again, as a retake does, may have it.
    second.intend(intent(Some(attempt))).await.expect("a retake");
}

pub(super) async fn a_write_that_fails_says_why_and_spares_the_others<S: Fresh>() {
    let store = S::fresh();
    let held = store.ledger().hold(&batch("")).await.expect("the batch");
    let attempt = held.intend(Intent::of_job("a")).await.expect("an intent");
    let (illegal, legal) =
        futures::join!(held.record(attempt, Event::Started { percent: None }), held.record(attempt, Event::Withdrawn));
    assert!(matches!(illegal, Err(LedgerError::Illegal(_))), "{illegal:?}");
    legal.expect("it was fine");
}

/// Whichever batch spent it, in doubt or not; what certainly bought nothing does not count.
pub(super) async fn a_limit_over_all_batches_is_kept_where_the_intent_is_written<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let (one, two) = (ledger.hold(&batch("1")).await.expect("one"), ledger.hold(&batch("2")).await.expect("two"));
    let limit = SpendLimit { name: "budget.day", since: Timestamp::UNIX_EPOCH, usd: Usd::from_micros(2_000_000) };
    let intent = |job: &str| Intent { limits: vec![limit.clone()], ..Intent::of_job(job) };
    let free = one.intend(intent("free")).await.expect("an intent");
    one.record(free, Event::Withdrawn).await.expect("recorded");
    let doubt = one.intend(intent("doubt")).await.expect("an intent");
    one.record(doubt, Event::Doubted(ServiceError::default())).await.expect("recorded");
    two.intend(intent("second")).await.expect("an intent");
    match two.intend(intent("third")).await {
        Err(LedgerError::OverLimit { name: "budget.day", limit, used }) => {
            assert_eq!((limit.to_string(), used.to_string()), ("2.00".into(), "1.80".into()));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(ledger.used_since(Timestamp::UNIX_EPOCH).await.expect("read").to_string(), "1.80");
    assert_eq!(ledger.used_since(Timestamp::MAX).await.expect("read"), Usd::ZERO);
}

pub(super) async fn a_task_belongs_to_one_attempt<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("")).await.expect("the batch");
    let (first, second) = (held.intend(Intent::of_job("a")).await, held.intend(Intent::of_job("b")).await);
    let (first, second) = (first.expect("an intent"), second.expect("an intent"));
    held.accept(first, TaskNames { id: task("t").id, alias: Some(task("also").id) }).await.expect("written");
    for taken in ["t", "also"] {
        let refused = held.accept(second, task(taken)).await;
        assert!(matches!(refused, Err(LedgerError::TaskTaken { .. })), "{taken}: {refused:?}");
    }
    let names = held.accept(second, TaskNames { id: task("u").id, alias: Some(task("also").id) }).await;
    assert_eq!(names.expect("written"), task("u"), "a second name of another's is left out");
    for (name, owner) in [("t", Some("a")), ("also", Some("a")), ("u", Some("b")), ("v", None)] {
        let found = ledger.owner(&task(name).id).await.expect("read").map(|(job, _)| job.to_string());
        assert_eq!(found.as_deref(), owner, "{name}");
    }
    let asked = ["also", "u", "v"].map(|name| task(name).id);
    let known: HashSet<TaskId> = ledger.known_tasks(asked.to_vec()).await.expect("read");
    assert_eq!(known, HashSet::from([task("also").id, task("u").id]));
}

pub(super) async fn only_tasks_that_can_be_asked_about_change_their_account<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("")).await.expect("the batch");
    let open = held.intend(Intent::of_job("open")).await.expect("an intent");
    held.accept(open, task("t")).await.expect("written");
    let gone = held.intend(Intent::of_job("gone")).await.expect("an intent");
    held.record(gone, Event::Refused(ServiceError::default())).await.expect("recorded");
    let account = Account { service: "s".into(), key: "new".into() };
    held.adopt(&account).await.expect("written");
    let history = ledger.history(&batch("")).await.expect("read");
    let keys: Vec<String> = history.attempts().map(|attempt| attempt.account.key.to_string()).collect();
    assert_eq!(keys, ["new", "k"]);
}

pub(super) async fn what_is_open_elsewhere_is_told<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("yesterday")).await.expect("the batch");
    let open = held.intend(Intent::of_job("open")).await.expect("an intent");
    held.accept(open, task("t")).await.expect("written");
    let doubt = held.intend(Intent::of_job("doubt")).await.expect("an intent");
    held.record(doubt, Event::Doubted(ServiceError::default())).await.expect("recorded");
    assert!(ledger.open_elsewhere(&batch("yesterday")).await.expect("read").is_empty(), "its own");
    let other = BatchKey { name: "other".into(), batch: String::new() };
    assert!(ledger.open_elsewhere(&other).await.expect("read").is_empty(), "of another name");
    let open = ledger.open_elsewhere(&batch("today")).await.expect("read");
    let told: Vec<_> =
        open.iter().map(|open| (&*open.batch.batch, open.outstanding, open.doubtful, open.price)).collect();
    assert_eq!(told, [("yesterday", 1, 1, Usd::from_micros(1_800_000))]);
}

pub(super) async fn what_was_bought_under_another_name_is_found<S: Fresh>() {
    let store = S::fresh();
    let ledger = store.ledger();
    let held = ledger.hold(&batch("")).await.expect("the batch");
    for (job, event) in [("bought", Event::Accepted(task("t"))), ("refused", Event::Refused(ServiceError::default()))] {
        let attempt = held.intend(Intent::of_job(job)).await.expect("an intent");
        held.record(attempt, event).await.expect("recorded");
    }
    let requests = || ["bought", "refused", "never"].map(|job| Intent::of_job(job).fingerprint).to_vec();
    assert!(ledger.bought_under_other_names("n", requests()).await.expect("read").is_empty(), "its own name");
    let found = ledger.bought_under_other_names("m", requests()).await.expect("read");
    let told: Vec<_> = found.iter().map(|bought| (bought.batch.clone(), bought.attempt.job.to_string())).collect();
    assert_eq!(told, [(batch(""), "bought".to_owned())]);
}

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
        (task(), proptest::option::of(any::<u8>())).prop_map(|(task, percent)| vec![
            Event::Accepted(task),
            Event::Started { percent },
            Event::Left { polls: 1 }
        ]),
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
async fn lived<H: HeldBatch>(held: &H, lives: &[Vec<Event>]) {
    for (number, life) in lives.iter().enumerate() {
        let attempt = held.intend(Intent::of_job(&format!("j{number}"))).await.expect("an intent");
        for event in life {
            match held.record(attempt, event.clone()).await {
                // Two of these tasks have the same name by chance.
                Err(LedgerError::TaskTaken { .. }) => break,
                recorded => recorded.expect("recorded"),
            }
        }
    }
}

/// Checks something for many lists of lives; the shortest list that breaks it is told.
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
pub(super) async fn whatever_the_service_says_is_read_back<S: Fresh>() {
    for_any_lives(64, |lives| async move {
        let store = S::fresh();
        let ledger = store.ledger();
        lived(&ledger.hold(&batch("")).await.expect("the batch"), &lives).await;
        let read = ledger.history(&batch("")).await.expect("every attempt can be read");
        assert_eq!(read.attempts().count(), lives.len());
        for (attempt, life) in read.attempts().zip(&lives) {
            if let [Event::Refused(error) | Event::Doubted(error)] | [_, Event::Failed { error, .. }] = life.as_slice()
                && let Some(told) = &attempt.error
            {
                let is_kept = **told == *error || told.raw.as_str().is_some_and(|raw| raw.contains("in the middle"));
                assert!(is_kept, "{error:?} became {told:?}");
            }
        }
    })
    .await;
}

/// The sums are those of the attempts, whatever became of them.
pub(super) async fn the_books_add_up<S: Fresh>() {
    for_any_lives(16, |lives| async move {
        let store = S::fresh();
        let ledger = store.ledger();
        lived(&ledger.hold(&batch("")).await.expect("the batch"), &lives).await;
        let history = ledger.history(&batch("")).await.expect("read");
        let cost = |wanted: fn(&&Attempt) -> bool| history.attempts().filter(wanted).map(|it| it.price).sum::<Usd>();
        let used = ledger.used_since(Timestamp::UNIX_EPOCH).await.expect("read");
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
