//! Any order of events, and a copy of a whole ledger from any store into a file and back.

use std::collections::HashSet;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::store::{Fresh, batch, completed, failed, intent_of, intent_with, task};
use crate::domain::{
    Attempt, AttemptState, BatchKey, Charge, Charging, Digest, JobId, Label, Labels, Move, OutputPath, Purchase,
    ServiceError, TaskId, TaskNames, UnfinishedRetake, Usd, VideoFile,
};
use crate::ledger::{Approval, Event, Intent, Ledger, LedgerError, LedgerLimit, LockedBatch, Span};

/// Leads a new attempt into each state.
fn lives() -> [(AttemptState, Vec<Event>); 8] {
    use AttemptState as S;
    let accepted = |id: &str| Event::Accepted(task(id));
    let doubted = || Event::Doubted(ServiceError::plain("worker\0crashed", "500"));
    let file =
        VideoFile { path: OutputPath::new("a.mp4").expect("a path"), sha256: "0".into(), bytes: 1, footage: None };
    let executed = Event::Executed { error: Some("no".into()), line: Some("l".into()) };
    let billed = Event::Billed { is_charged: false, source: "bill.csv".into() };
    [
        (S::Intended, vec![]),
        (S::Void, vec![doubted(), Event::Denied]),
        (S::InDoubt, vec![doubted()]),
        (S::Rejected, vec![Event::Refused(ServiceError::plain("no", "400"))]),
        (S::Queued, vec![accepted("queued"), Event::AlsoNamed(TaskId::new("alias").expect("an ID"))]),
        (S::InProgress, vec![accepted("running"), Event::Started]),
        (S::Completed, vec![accepted("done"), completed(), Event::Fetched(file), executed]),
        (S::Failed, vec![accepted("failed"), failed(), billed]),
    ]
}

/// All records that a ledger returns about its batches.
async fn contents(ledger: &Ledger, keys: &[BatchKey]) -> (Vec<(BatchKey, Attempt)>, Vec<String>, Vec<LedgerLimit>) {
    let of = |line: crate::ledger::Spending| {
        let crate::ledger::Spending { at, batch, model, labels, charge, is_doubtful, attempts, price } = line;
        format!("{at} {batch} {model} {labels:?} {charge:?} {is_doubtful} {attempts} {price}")
    };
    let since = Timestamp::UNIX_EPOCH;
    let mut lines: Vec<String> = ledger.spending(since).await.expect("sums").into_iter().map(of).collect();
    lines.sort();
    for label in [None, Some(Label { name: "client".into(), value: "acme".into() })] {
        lines.push(ledger.used_since(since, label).await.expect("a sum").to_string());
    }
    for key in keys {
        let history = ledger.history(key).await.expect("a history");
        let unsent: Vec<_> =
            lives().iter().filter_map(|(state, _)| history.why_unsent(&job(*state)).map(str::to_owned)).collect();
        lines.push(format!("{unsent:?} {:?}", history.retake()));
    }
    (ledger.submissions(|_| true).await.expect("attempts"), lines, ledger.controls().await.expect("limits").limits)
}

fn job(state: AttemptState) -> JobId {
    JobId::new(state.name()).expect("an ID")
}

pub(in crate::ledger) async fn copies_carry_every_state<S: Fresh>() {
    let (store, directory) = (S::fresh(), tempfile::tempdir().expect("a directory"));
    let (ledger, keys) = (store.ledger(), [batch("today"), batch("")]);
    let first = ledger.lock(&keys[0]).await.expect("the batch");
    for (state, events) in lives() {
        let labels: Labels = [("client".to_owned(), "acme".to_owned())].into_iter().collect();
        let approval = Some(Approval { digest: Digest::of_json(&"plan").expect("JSON"), most: 1 });
        let change = |purchase: &mut Purchase| {
            purchase.labels = labels;
            if state == AttemptState::Failed {
                purchase.charging = Charging::Undocumented;
            }
        };
        let intent = Intent { approval, ..intent_with(state.name(), change) };
        let attempt = first.intend(intent).await.expect("an intent");
        for event in events {
            first.record(attempt, event).await.expect("allowed");
        }
    }
    let moved = Move { from: job(AttemptState::Completed), to: JobId::new("renamed").expect("an ID") };
    first.move_jobs(&[moved]).await.expect("moved");
    first.note_unsent(&job(AttemptState::Rejected), "no\0URL").await.expect("noted");
    let second = ledger.lock(&keys[1]).await.expect("another batch");
    second.intend(intent_of("other")).await.expect("an intent");
    let retake = UnfinishedRetake { globs: vec!["j*".into()], after: 1 };
    second.keep_retake(Some(retake)).await.expect("kept");
    for (label, span) in [(None, Span::Month), (Some(Label { name: "client".into(), value: "acme".into() }), Span::Day)]
    {
        let limit = LedgerLimit { label, span, usd: Usd::from_micros(90_000_000), zone: "Europe/Berlin".into() };
        ledger.set_limit(limit, true).await.expect("a limit");
    }
    drop((first, second));

    let before = contents(&ledger, &keys).await;
    let file = Ledger::in_file(directory.path().join("copy.db"));
    let out = ledger.copy_to(&file).await.expect("a copy");
    assert_eq!(contents(&file, &keys).await, before);
    assert!(
        file.controls().await.expect("a ledger").freeze.is_none()
            && ledger.controls().await.expect("a ledger").freeze.is_some()
    );
    assert_eq!(file.file().expect("a file").check().await.expect("whole"), out);

    let (again, last) = (S::fresh(), Ledger::in_file(directory.path().join("last.db")));
    assert_eq!(file.copy_to(&again.ledger()).await.expect("back"), out);
    assert_eq!(contents(&again.ledger(), &keys).await, before);
    again.ledger().copy_to(&last).await.expect("a copy");
    assert_eq!(last.file().expect("a file").check().await.expect("whole"), out);
    assert_eq!(contents(&last, &keys).await, before);
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

/// JSON in nested lists.
fn deep(depth: usize) -> Value {
    (0..depth).fold(json!("in the middle"), |inner, _| json!([inner]))
}

fn any_error() -> impl Strategy<Value = ServiceError> {
    let raw = prop_oneof![4 => any_json(), 1 => (100..140_usize).prop_map(deep)];
    (".*", proptest::option::of(".*"), raw).prop_map(|(message, code, raw)| ServiceError { message, code, raw })
}

/// Lives of an attempt with text from outside.
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

/// Records the lives of jobs one after the other. Returns the recorded events.
async fn lived(held: &LockedBatch, lives: &[Vec<Event>]) {
    for (number, life) in lives.iter().enumerate() {
        let attempt = held.intend(intent_of(&format!("j{number}"))).await.expect("an intent");
        for event in life {
            match held.record(attempt, event.clone()).await {
                // Two of these tasks have the same name by chance. Until the doubt is recorded, every intent is deferred.
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

/// Checks a property for many lists of lives. Reports the shortest counterexample.
async fn for_any_lives<F: Future<Output = ()>>(cases: u32, check: impl Fn(Vec<Vec<Event>>) -> F + Send + 'static) {
    // A blocking thread: proptest is not asynchronous.
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

/// No response of the service makes a ledger unreadable.
pub(in crate::ledger) async fn any_response_is_read_back<S: Fresh>() {
    for_any_lives(64, |lives| async move {
        let store = S::fresh();
        let ledger = store.ledger();
        lived(&ledger.lock(&batch("")).await.expect("the batch"), &lives).await;
        let read = ledger.history(&batch("")).await.expect("every attempt can be read");
        assert_eq!(read.attempts().count(), lives.len());
        // Its task had the name of another by chance, which ended its life.
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

/// The sums are those of the attempts in every state.
pub(in crate::ledger) async fn sums_are_those_of_the_attempts<S: Fresh>() {
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
        let jobs: HashSet<JobId> = history.attempts().map(|attempt| attempt.job().clone()).collect();
        assert_eq!(jobs.len(), lives.len());
    })
    .await;
}
