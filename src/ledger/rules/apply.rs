//! The transition of an attempt by an event, and by the recovery after a crash.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::{
    Archived, Attempt, AttemptId, BatchKey, Billed, Charge, Declaration, Declared, Executed, ServiceError, TaskId,
    TaskNames,
};
use crate::ledger::row::Row;
use crate::ledger::{Event, GIVEN_UP, IllegalEvent, LedgerError};

/// Applies an event to an attempt: at a time, on a machine. Returns an error, and changes nothing, if the state does not allow it.
pub(in crate::ledger) fn apply(
    attempt: &mut Attempt,
    event: &Event,
    at: Timestamp,
    machine: &str,
) -> Result<(), IllegalEvent> {
    if let Event::Undone(what) = event {
        event.check_declared(attempt, *what)?;
    }
    attempt.state = event.after(attempt.state)?;
    let known = &mut attempt.particulars;
    match event {
        Event::Withdrawn => attempt.error = None,
        Event::ServerError => {
            attempt.error = None;
            known.declared = Some(Declared { what: Declaration::ServerError, at });
        }
        Event::Refused(error) | Event::Doubted(error) => {
            (attempt.error, attempt.answered_at) = (Some(Box::new(error.clone())), Some(at));
        }
        // Ends a doubt by another run.
        Event::Accepted(task) => {
            (attempt.task, attempt.error, attempt.answered_at) = (Some(task.clone()), None, Some(at));
        }
        // The time of the first response stays unknown.
        Event::Found(task) => {
            (attempt.task, attempt.error, attempt.answered_at) = (Some(task.clone()), None, None);
            known.declared = Some(Declared { what: Declaration::Found, at });
        }
        // A recorded alias stays: it may be the only name that the service accepts.
        Event::AlsoNamed(alias) => {
            if let Some(TaskNames { alias: none @ None, .. }) = &mut attempt.task {
                *none = Some(alias.clone());
            }
        }
        // The error of the doubt stayed.
        Event::Undone(Declaration::NeverCreated) => known.declared = None,
        Event::Undone(Declaration::Found) => {
            // Its ID stays readable: the mistake may be in taking it back.
            let task = attempt.task.take().map(|task| task.to_string()).unwrap_or_default();
            known.declared = None;
            let message = format!("{task} was recorded for it, and taken back");
            attempt.error = Some(Box::new(ServiceError { message, ..ServiceError::default() }));
        }
        Event::Undone(_) => (attempt.error, known.declared) = (None, None),
        Event::Denied => known.declared = Some(Declared { what: Declaration::NeverCreated, at }),
        Event::GivenUp => {
            attempt.error =
                Some(Box::new(ServiceError::plain("its task was abandoned, because it never ended", GIVEN_UP)));
            known.declared = Some(Declared { what: Declaration::Lost, at });
        }
        Event::Started => {}
        // Of several reports, the highest counts.
        Event::Reported { usd } => known.reported_usd = known.reported_usd.max(Some(*usd)),
        Event::Left { polls } => attempt.polls = attempt.polls.saturating_add(*polls),
        Event::Completed { video_url, ended_at, polls } => {
            (attempt.video_url, attempt.ended_at) = (Some(video_url.clone()), Some(*ended_at));
            attempt.polls = attempt.polls.saturating_add(*polls);
        }
        Event::Failed { error, ended_at, polls } | Event::Disowned { error, ended_at, polls } => {
            (attempt.error, attempt.ended_at) = (Some(Box::new(error.clone())), Some(*ended_at));
            known.is_disowned = matches!(event, Event::Disowned { .. });
            attempt.polls = attempt.polls.saturating_add(*polls);
        }
        Event::Billed { is_charged, source } => {
            known.billed = Some(Box::new(Billed { is_charged: *is_charged, source: source.clone(), at }));
        }
        Event::Relinked { .. }
        | Event::Fetched(_)
        | Event::Executed { .. }
        | Event::Archived { .. }
        | Event::Reviewed(_)
        | Event::Moved(_) => apply_to_video(attempt, event, at, machine),
    }
    Ok(())
}

/// Applies an event of a video to its attempt.
fn apply_to_video(attempt: &mut Attempt, event: &Event, at: Timestamp, machine: &str) {
    let known = &mut attempt.particulars;
    match event {
        Event::Relinked { video_url } => attempt.video_url = Some(video_url.clone()),
        Event::Fetched(file) => {
            attempt.file = Some(Box::new(file.clone()));
            attempt.fetched_at.get_or_insert(at);
            known.fetched_by = Some(machine.into());
            known.archived = None;
        }
        Event::Executed { error, line } => {
            known.executed = Some(Box::new(Executed { at, error: error.clone(), line: line.clone() }));
        }
        Event::Archived { to } => known.archived = Some(Box::new(Archived { at, to: to.clone() })),
        Event::Reviewed(review) => attempt.review(review.clone(), at),
        Event::Moved(path) => {
            if let Some(file) = &mut attempt.file {
                file.path = path.clone();
            }
        }
        _ => {}
    }
}

/// Puts an intent without a response in doubt. Its time of response stays unknown: only the end of its runner settles it.
pub(in crate::ledger) fn recover(attempt: &mut Attempt) -> Result<(), IllegalEvent> {
    let message = "the run ended between sending and the answer".to_owned();
    let error = ServiceError { message, ..ServiceError::default() };
    attempt.state = Event::Doubted(error.clone()).after(attempt.state)?;
    attempt.error = Some(Box::new(error));
    Ok(())
}

/// The owners of task IDs in one transaction.
pub(in crate::ledger) struct Owners(HashMap<TaskId, Vec<TaskOwner>>);

struct TaskOwner {
    attempt: AttemptId,
    service: std::sync::Arc<str>,
    job: String,
    batch: BatchKey,
}

impl Owners {
    /// The names in an event that need an owner.
    pub(in crate::ledger) fn needed_by(event: &Event) -> impl Iterator<Item = &TaskId> {
        let names = match event {
            Event::Accepted(task) | Event::Found(task) => [Some(&task.id), task.alias.as_ref()],
            Event::AlsoNamed(name) => [Some(name), None],
            _ => [None, None],
        };
        names.into_iter().flatten()
    }

    pub(in crate::ledger) fn new(named: Vec<(BatchKey, Attempt)>) -> Self {
        let mut owners = Self(HashMap::new());
        for (batch, attempt) in named {
            for name in attempt.task.iter().flat_map(TaskNames::each) {
                owners.add(name, &attempt, &batch);
            }
        }
        owners
    }

    fn add(&mut self, name: &TaskId, attempt: &Attempt, batch: &BatchKey) {
        self.0.entry(name.clone()).or_default().push(TaskOwner {
            attempt: attempt.id,
            service: attempt.account.service.clone(),
            job: attempt.job().to_string(),
            batch: batch.clone(),
        });
    }

    /// Claims a task for an attempt, without an alias of another attempt. Refuses a task of another attempt: one of the two responses was wrong,
    /// and it is unknown which.
    pub(in crate::ledger) fn claim(
        &mut self,
        attempt: &Attempt,
        batch: &BatchKey,
        mut task: TaskNames,
    ) -> Result<TaskNames, LedgerError> {
        self.claim_name(attempt, batch, &task.id)?;
        task.alias = task.alias.filter(|alias| self.claim_name(attempt, batch, alias).is_ok());
        Ok(task)
    }

    /// Claims a name for an attempt, or refuses it if it belongs to another attempt at the same service.
    pub(in crate::ledger) fn claim_name(
        &mut self,
        attempt: &Attempt,
        batch: &BatchKey,
        name: &TaskId,
    ) -> Result<(), LedgerError> {
        let owners = self.0.get(name).map_or(&[][..], Vec::as_slice);
        let is_other = |owner: &&TaskOwner| owner.attempt != attempt.id && owner.service == attempt.account.service;
        if let Some(TaskOwner { job, batch, .. }) = owners.iter().find(is_other) {
            return Err(LedgerError::TaskTaken { task: name.clone(), job: job.clone(), batch: batch.clone() });
        }
        self.add(name, attempt, batch);
        Ok(())
    }
}

/// The span of one sum, and of a line of `spend`, in microseconds. In every time zone, days start at a quarter of an hour.
pub(in crate::ledger) const QUARTER_US: i64 = 15 * 60 * 1_000_000;

/// The quarter of an hour of a time, counted from 1970.
pub(in crate::ledger) fn quarter(at: Timestamp) -> i64 {
    at.as_microsecond().div_euclid(QUARTER_US)
}

/// The changes of one commit to the sums for limits, in millionths of a dollar.
#[derive(Default)]
pub(in crate::ledger) struct Sums {
    spent: BTreeMap<(String, String, i64), i64>,
}

/// A change to the sum of everything (no label, no value) or of a label in one span.
#[derive(Serialize)]
pub(in crate::ledger) struct SpentChange<'a> {
    pub(in crate::ledger) label: &'a str,
    pub(in crate::ledger) value: &'a str,
    pub(in crate::ledger) quarter: i64,
    pub(in crate::ledger) micros: i64,
}

impl Sums {
    /// Adds the change of an attempt.
    pub(in crate::ledger) fn add(&mut self, before: Option<&Attempt>, after: &Attempt) {
        let micros = spent(after) - before.map_or(0, spent);
        if micros == 0 {
            return;
        }
        let quarter = quarter(after.intended_at);
        let labels = after.purchase.labels.iter().map(|(label, value)| (label.clone(), value.clone()));
        for (label, value) in labels.chain([(String::new(), String::new())]) {
            *self.spent.entry((label, value, quarter)).or_default() += micros;
        }
    }

    /// The changes to sums by label and span, in one order for all transactions.
    pub(in crate::ledger) fn spent(&self) -> impl Iterator<Item = SpentChange<'_>> {
        self.spent.iter().map(|((label, value, quarter), micros)| SpentChange {
            label,
            value,
            quarter: *quarter,
            micros: *micros,
        })
    }
}

/// The cost, unless it was certainly not charged.
fn spent(attempt: &Attempt) -> i64 {
    if attempt.charge() == Charge::None { 0 } else { attempt.cost().micros() }
}

/// The changes of a transaction.
pub(in crate::ledger) struct Changes<'r> {
    /// New rows. They remove the reason why their jobs were not sent.
    pub(in crate::ledger) new: Vec<&'r Row>,
    /// Rows that exist, each before and after.
    pub(in crate::ledger) changed: Vec<(&'r Row, &'r Row)>,
    /// Their changes to the sums.
    pub(in crate::ledger) sums: Sums,
}

impl<'r> Changes<'r> {
    pub(in crate::ledger) fn new(
        new: impl IntoIterator<Item = &'r Row>,
        changed: impl IntoIterator<Item = (&'r Row, &'r Row)>,
    ) -> Self {
        let (new, changed): (Vec<_>, Vec<_>) = (new.into_iter().collect(), changed.into_iter().collect());
        let mut sums = Sums::default();
        for row in &new {
            sums.add(None, &row.attempt);
        }
        for (before, row) in &changed {
            sums.add(Some(&before.attempt), &row.attempt);
        }
        Self { new, changed, sums }
    }
}
