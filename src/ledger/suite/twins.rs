//! Any sequence of operations gives the same answers and the same attempts in a store, where commands share commits, and one by one in a file.

use std::collections::BTreeMap;

use jiff::Timestamp;
use proptest::prelude::*;

use super::store::{Fresh, batch, intent_of, task};
use crate::domain::{
    Account, Attempt, AttemptId, BatchKey, Charging, Choice, Declaration, Digest, JobId, Label, Labels, Move,
    OutputPath, Review, ServiceError, TaskId, TaskNames, UnfinishedRetake, Usd, VideoFile,
};
use crate::ledger::{Approval, Event, Intent, Ledger, LedgerError, LedgerLimit, LockedBatch, Span, SpendLimit};

/// The maximum number of operations in a sequence.
const MAX_OPERATIONS: usize = 32;

/// An operation on one of two batches. Attempts are named by the order of their intents.
#[derive(Clone, Debug)]
enum Operation {
    Intend { batch: usize, job: usize, known: bool, approved: bool, guarded: bool, labeled: bool, limited: bool },
    Record { attempt: usize, event: Event },
    Accept { attempt: usize, task: TaskNames },
    Move { batch: usize, from: usize, to: usize },
    Reassign { batch: usize },
    NoteUnsent { batch: usize, job: usize },
    KeepRetake { batch: usize },
    Limit { is_kept: bool },
    Freeze { is_frozen: bool },
    LockAgain,
}

fn any_task() -> impl Strategy<Value = TaskNames> {
    // Few names, so that attempts compete for them.
    let name = || (0..4_u8).prop_map(|number| TaskId::new(format!("t{number}")).expect("an ID"));
    (name(), proptest::option::of(name())).prop_map(|(id, alias)| TaskNames { id, alias })
}

fn any_event() -> impl Strategy<Value = Event> {
    let error = || ServiceError::plain("no", "code");
    let ended_at = Timestamp::UNIX_EPOCH;
    let file =
        VideoFile { path: OutputPath::new("a.mp4").expect("a path"), sha256: "0".into(), bytes: 1, footage: None };
    let failed = Event::Failed { error: error(), ended_at, polls: 2 };
    let plain = vec![
        Event::Withdrawn,
        Event::ServerError,
        Event::Refused(error()),
        Event::Doubted(error()),
        Event::GivenUp,
        Event::Started,
        Event::Left { polls: 1 },
        Event::Completed { video_url: "u".into(), ended_at, polls: 1 },
        failed.clone(),
        Event::Disowned { error: error(), ended_at, polls: 1 },
        Event::Billed { is_charged: true, source: "b".into() },
        Event::Billed { is_charged: false, source: "b".into() },
        Event::Relinked { video_url: "v".into() },
        Event::Fetched(file),
        Event::Executed { error: Some("no".into()), line: None },
        Event::Executed { error: None, line: Some("done".into()) },
        Event::Undone(Declaration::NeverCreated),
        Event::Undone(Declaration::Found),
        Event::Undone(Declaration::Lost),
        Event::Archived { to: Some("/done/a.mp4".into()) },
        Event::Reviewed(Review { by: "anna".into(), choice: Some(Choice::Keep), note: String::new(), decides: true }),
        Event::Reviewed(Review { by: "anna".into(), choice: None, note: "soft".into(), decides: false }),
        Event::Moved(OutputPath::new("a~1.mp4").expect("a path")),
    ];
    prop_oneof![
        4 => proptest::sample::select(plain),
        1 => Just(failed),
        2 => any_task().prop_map(Event::Accepted),
        1 => any_task().prop_map(Event::Found),
        1 => any_task().prop_map(|task| Event::AlsoNamed(task.id)),
    ]
}

fn any_operation() -> impl Strategy<Value = Operation> {
    let (batch, job, attempt) = (0..2_usize, 0..3_usize, 0..8_usize);
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        6 => (batch.clone(), job.clone(), flags).prop_map(|(batch, job, (known, approved, guarded, labeled, limited))| {
            Operation::Intend { batch, job, known, approved, guarded, labeled, limited }
        }),
        8 => (attempt.clone(), any_event()).prop_map(|(attempt, event)| Operation::Record { attempt, event }),
        4 => (attempt, any_task()).prop_map(|(attempt, task)| Operation::Accept { attempt, task }),
        1 => (batch.clone(), job.clone(), job.clone()).prop_map(|(batch, from, to)| Operation::Move { batch, from, to }),
        1 => batch.clone().prop_map(|batch| Operation::Reassign { batch }),
        1 => (batch.clone(), job).prop_map(|(batch, job)| Operation::NoteUnsent { batch, job }),
        1 => batch.prop_map(|batch| Operation::KeepRetake { batch }),
        1 => any::<bool>().prop_map(|is_kept| Operation::Limit { is_kept }),
        1 => any::<bool>().prop_map(|is_frozen| Operation::Freeze { is_frozen }),
        1 => Just(Operation::LockAgain),
    ]
}

/// The batches: a request of one may repeat a request of the other.
fn keys() -> [BatchKey; 2] {
    [batch(""), BatchKey { name: "other".into(), batch: String::new() }]
}

fn id(job: usize) -> JobId {
    JobId::new(format!("j{job}")).expect("an ID")
}

/// A ledger with both batches locked, and the attempts in the order of their intents.
struct Side {
    ledger: Ledger,
    locked: Vec<LockedBatch>,
    attempts: Vec<(usize, AttemptId)>,
    /// The number of attempts of earlier runs: a later run never has a response to their submissions.
    of_earlier_runs: usize,
}

impl Side {
    async fn new(ledger: Ledger) -> Self {
        let mut side = Self { ledger, locked: Vec::new(), attempts: Vec::new(), of_earlier_runs: 0 };
        side.lock().await;
        side
    }

    async fn lock(&mut self) -> Vec<usize> {
        self.locked.clear();
        self.of_earlier_runs = self.attempts.len();
        for key in keys() {
            self.locked.push(self.ledger.lock(&key).await.expect("a batch"));
        }
        self.locked.iter().map(LockedBatch::recovered).collect()
    }

    /// Executes an operation. Returns its result, with attempts named by their order.
    async fn execute(&mut self, operation: &Operation) -> String {
        match operation.clone() {
            Operation::Intend { batch, job, known, approved, guarded, labeled, limited } => {
                let label = Label { name: "client".into(), value: "acme".into() };
                let known = self.attempts.last().filter(|_| known).map(|(_, attempt)| *attempt);
                let approval = Approval { digest: Digest::of_json(&"a plan").expect("JSON"), most: 1 };
                let limit = SpendLimit {
                    name: "budget".into(),
                    label: labeled.then(|| label.clone()),
                    since: Timestamp::UNIX_EPOCH,
                    usd: Usd::from_micros(3_000_000),
                };
                let mut intent = Intent {
                    known,
                    approval: approved.then_some(approval),
                    paid_elsewhere: guarded.then_some(0),
                    limits: if limited { vec![limit] } else { Vec::new() },
                    ..intent_of(id(job).as_str())
                };
                if job > 0 {
                    intent.purchase.charging = Charging::Undocumented;
                }
                if labeled {
                    intent.purchase.labels = Labels::from([(label.name, label.value)]);
                }
                let intended = self.locked[batch].intend(intent).await;
                self.attempts.extend(intended.as_ref().ok().map(|attempt| (batch, *attempt)));
                answer(intended.map(|_| self.attempts.len()))
            }
            Operation::Record { attempt, event: Event::Accepted(_) } | Operation::Accept { attempt, .. }
                if attempt < self.of_earlier_runs =>
            {
                String::new()
            }
            Operation::Record { attempt, event } => self.record(attempt, event).await,
            Operation::Accept { attempt, task } => self.record(attempt, Event::Accepted(task)).await,
            Operation::Move { batch, from, to } => {
                answer(self.locked[batch].move_jobs(&[Move { from: id(from), to: id(to) }]).await)
            }
            Operation::Reassign { batch } => {
                let account = Account { service: "s".into(), key: "new".into() };
                answer(self.locked[batch].reassign(&account).await)
            }
            Operation::NoteUnsent { batch, job } => answer(self.locked[batch].note_unsent(&id(job), "full").await),
            Operation::KeepRetake { batch } => {
                let retake = UnfinishedRetake { globs: vec!["*".into()], after: 0 };
                answer(self.locked[batch].keep_retake(Some(retake)).await)
            }
            Operation::Limit { is_kept } => {
                let usd = Usd::from_micros(2_000_000);
                let limit = LedgerLimit { label: None, span: Span::Month, usd, zone: "UTC".into() };
                format!("{:?}", self.ledger.set_limit(limit, is_kept).await)
            }
            Operation::Freeze { is_frozen } => {
                format!("{:?}", self.ledger.set_freeze(is_frozen.then_some("a reason")).await)
            }
            Operation::LockAgain => format!("{:?}", self.lock().await),
        }
    }

    /// Records an event of an attempt, if there is one. A task of another attempt puts it in doubt, as in a run.
    async fn record(&self, attempt: usize, event: Event) -> String {
        let Some((batch, attempt)) = self.attempts.get(attempt) else { return String::new() };
        let (locked, is_accepted) = (&self.locked[*batch], matches!(event, Event::Accepted(_)));
        let recorded = match event {
            Event::Accepted(task) => locked.accept(*attempt, task).await.map(Some),
            event => locked.record(*attempt, event).await.map(|()| None),
        };
        if is_accepted && matches!(recorded, Err(LedgerError::TaskTaken { .. })) {
            let doubted = locked.record(*attempt, Event::Doubted(ServiceError::default())).await;
            return format!("{}, {}", answer(recorded), answer(doubted));
        }
        answer(recorded)
    }

    /// All facts of the ledger without times and numbers.
    async fn contents(&self) -> String {
        let mut shown = String::new();
        let place = |attempt: &Attempt| self.attempts.iter().position(|(_, id)| *id == attempt.id);
        for key in keys() {
            let history = self.ledger.history(&key).await.expect("read");
            for attempt in history.attempts() {
                let place = place(attempt);
                let mut record = serde_json::to_value(Attempt { id: AttemptId(0), ..attempt.clone() }).expect("JSON");
                without_times(&mut record);
                shown += &format!("{key} {place:?} {record}\n");
            }
            let unsent: Vec<_> = (0..3).map(|job| history.why_unsent(&id(job)).map(str::to_owned)).collect();
            shown += &format!("{key}: {unsent:?} {:?}\n", history.retake());
            for open in self.ledger.open_elsewhere(&BatchKey { batch: "x".into(), ..key.clone() }).await.expect("read")
            {
                let counts = (open.active, open.doubtful, open.unanswered, open.unfetched, open.unexecuted);
                shown += &format!("{} {counts:?} {}\n", open.batch, open.at_risk);
            }
            let requests = || (0..3).map(|job| intent_of(id(job).as_str()).normalized).collect();
            let bought = self.ledger.bought_elsewhere(&key, requests).await.expect("read");
            let bought = bought.iter().map(|one| (&one.attempt.normalized, (place(&one.attempt), one.attempts)));
            shown += &format!("{:?}\n", bought.collect::<BTreeMap<_, _>>());
        }
        let label = Label { name: "client".into(), value: "acme".into() };
        for label in [None, Some(label)] {
            shown += &format!("{}\n", self.ledger.used_since(Timestamp::UNIX_EPOCH, label).await.expect("read"));
        }
        let spent = self.ledger.spending(Timestamp::UNIX_EPOCH).await.expect("read");
        let spent = |charge| spent.iter().filter(|line| line.charge == charge).map(|line| line.price).sum::<Usd>();
        shown += &format!("{} {}\n", spent(crate::domain::Charge::Charged), spent(crate::domain::Charge::Unknown));
        for name in 0..4 {
            let owner = self.ledger.find_task(&task(&format!("t{name}")).id).await.expect("read");
            shown += &format!("{owner:?}\n");
        }
        shown
    }
}

/// A result as text: of an error, its kind and facts.
fn answer<T: std::fmt::Debug>(answer: Result<T, LedgerError>) -> String {
    answer.map_or_else(|error| format!("{error}"), |value| format!("{value:?}"))
}

/// Replaces times, which differ between ledgers, by their presence.
fn without_times(record: &mut serde_json::Value) {
    match record {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                if name.ends_with("_at") || name == "at" {
                    *value = (!value.is_null()).into();
                }
                without_times(value);
            }
        }
        serde_json::Value::Array(values) => values.iter_mut().for_each(without_times),
        _ => {}
    }
}

pub(in crate::ledger) async fn any_sequence_has_the_results_of_a_file<S: Fresh>() {
    let checked = tokio::task::spawn_blocking(move || {
        let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(S::SEQUENCES) };
        let sequences = proptest::collection::vec(any_operation(), 1..MAX_OPERATIONS);
        proptest::test_runner::TestRunner::new(config).run(&sequences, |operations| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let store = S::fresh();
                let directory = tempfile::tempdir().expect("a directory");
                let file = Ledger::in_place(directory.path().join("ledger.db"), || ());
                let (mut real, mut model) = (Side::new(store.ledger()).await, Side::new(file).await);
                for operation in &operations {
                    let (shown, expected) = (real.execute(operation).await, model.execute(operation).await);
                    prop_assert_eq!(shown, expected, "{:?}", operation);
                }
                prop_assert_eq!(real.contents().await, model.contents().await);
                Ok(())
            })
        })
    });
    if let Err(broken) = checked.await.expect("the runner") {
        panic!("{broken}");
    }
}
