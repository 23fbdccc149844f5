//! An attempt in a store: its record as JSON, beside the columns that queries need.

use serde::Serialize;

use crate::domain::{Attempt, TaskId};

/// An attempt in a store.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row {
    pub(super) attempt: Attempt,
    /// The number of its batch in the store.
    pub(super) batch: i64,
    pub(super) shared: Shared,
}

/// Facts that only runners of a shared ledger need.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Shared {
    /// The runner that sent it.
    pub(super) runner: Option<i64>,
    /// The runner that polls its task.
    pub(super) assigned_runner: Option<i64>,
    /// The number of writes. A runner that knows a higher number knows a write that the database lost.
    pub(super) version: i64,
    /// True if it was restored after the database lost it.
    pub(super) was_forgotten: bool,
}

impl Row {
    /// An attempt of another ledger, which no runner of this one sent.
    pub(super) fn copied(attempt: Attempt, batch: i64) -> Self {
        Self { attempt, batch, shared: Shared { version: 1, ..Shared::default() } }
    }
}

/// The columns of a row. All but the record repeat what is in it: queries and indexes need them.
#[derive(PartialEq, Eq, Debug, Serialize)]
pub(super) struct Columns<'r> {
    pub(super) id: i64,
    pub(super) batch: i64,
    pub(super) job: &'r str,
    pub(super) fingerprint: &'r str,
    pub(super) normalized: &'r str,
    pub(super) model: &'r str,
    /// As a JSON object, if there are any.
    pub(super) labels: Option<String>,
    pub(super) service: &'r str,
    pub(super) key: &'r str,
    pub(super) state: &'static str,
    /// The charge that limits count: all but `none`.
    pub(super) charge: &'static str,
    pub(super) is_declared: bool,
    pub(super) is_unfinished: bool,
    /// True if it is completed without a downloaded video.
    pub(super) needs_download: bool,
    pub(super) price_micros: i64,
    pub(super) task: Option<&'r str>,
    pub(super) alias: Option<&'r str>,
    pub(super) intended_us: i64,
    /// The attempt as JSON.
    pub(super) record: String,
    #[serde(flatten)]
    pub(super) shared: Shared,
}

impl<'r> Columns<'r> {
    pub(super) fn of(Row { attempt, batch, shared }: &'r Row) -> Result<Self, Unreadable> {
        let labels = &attempt.particulars.labels;
        let task = attempt.task.as_ref();
        Ok(Self {
            id: attempt.id.0,
            batch: *batch,
            job: attempt.job.as_str(),
            fingerprint: attempt.fingerprint.as_str(),
            normalized: attempt.normalized.as_str(),
            model: &attempt.model,
            labels: (!labels.is_empty()).then(|| serde_json::to_string(labels)).transpose()?,
            service: &attempt.account.service,
            key: &attempt.account.key,
            state: attempt.state.name(),
            charge: attempt.charge().name(),
            is_declared: attempt.particulars.declared.is_some(),
            is_unfinished: attempt.is_unfinished(),
            needs_download: attempt.needs_download(),
            price_micros: attempt.price.micros(),
            task: task.map(|task| task.id.as_str()),
            alias: task.and_then(|task| task.alias.as_ref()).map(TaskId::as_str),
            intended_us: attempt.intended_at.as_microsecond(),
            record: serde_json::to_string(attempt)?,
            shared: *shared,
        })
    }
}

/// A value of the ledger that can't be read, or written. Someone else changed it, and a guess would cost money.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// The record of an attempt.
    #[error("can't read attempt {attempt}")]
    Record {
        /// Its number.
        attempt: i64,
        /// The cause.
        source: serde_json::Error,
    },
    /// Another value.
    #[error("can't read the ledger: its {column} is {value:?}")]
    Value {
        /// Its column.
        column: &'static str,
        /// The value.
        value: String,
    },
    /// A value that has no JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Unreadable {
    pub(super) fn value(column: &'static str, value: &str) -> Self {
        Self::Value { column, value: value.to_owned() }
    }
}

/// Reads a record. Shares the account with the attempt before it, which most have.
pub(super) fn read(id: i64, record: &str, before: Option<&Attempt>) -> Result<Attempt, Unreadable> {
    let attempt =
        serde_json::from_str::<Attempt>(record).map_err(|source| Unreadable::Record { attempt: id, source })?;
    Ok(match before {
        Some(before) if before.account == attempt.account => Attempt { account: before.account.clone(), ..attempt },
        _ => attempt,
    })
}
