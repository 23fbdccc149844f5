//! An attempt in a store: its record as JSON, beside the columns that queries need. Values of statements.

use std::borrow::Cow;

use serde::Serialize;

use crate::domain::{Attempt, TaskId, Usd};

/// An attempt in a store.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Row {
    pub(super) attempt: Attempt,
    /// The number of its batch in the store.
    pub(super) batch: i64,
    pub(super) shared: Shared,
}

/// Facts for runners of a shared ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub(super) struct Shared {
    /// The runner that submitted it.
    pub(super) runner: Option<i64>,
    /// The number of writes. A runner with a higher number knows a write that the database lost.
    pub(super) version: i64,
    /// True if it was restored after the database lost it.
    pub(super) was_forgotten: bool,
}

impl Row {
    /// An attempt from another ledger.
    pub(super) fn copied(attempt: Attempt, batch: i64) -> Self {
        Self { attempt, batch, shared: Shared { version: 1, ..Shared::default() } }
    }

    /// The values of [`COLUMNS`].
    pub(super) fn values(&self) -> Result<Vec<Value<'_>>, Unreadable> {
        let mut values = Vec::with_capacity(COLUMNS.len());
        values.extend(self.facts()?);
        values.push(serde_json::to_string(&self.attempt)?.into());
        Ok(values)
    }

    /// The values without the record: labels as a JSON object, if there are any; the charge that limits count, all but `none`.
    pub(super) fn facts(&self) -> Result<[Value<'_>; COLUMNS.len() - 1], Unreadable> {
        let Self { attempt, batch, .. } = self;
        let labels = &attempt.purchase.labels;
        let labels = (!labels.is_empty()).then(|| serde_json::to_string(labels)).transpose()?;
        let task = attempt.task.as_ref();
        Ok([
            attempt.id.0.into(),
            (*batch).into(),
            attempt.job().as_str().into(),
            attempt.purchase.fingerprint().as_str().into(),
            attempt.normalized.as_str().into(),
            (&attempt.purchase.model).into(),
            Value::Text(labels.map(Into::into)),
            (&attempt.account.service).into(),
            (&attempt.account.key).into(),
            attempt.state.name().into(),
            attempt.charge().name().into(),
            attempt.particulars.declared.is_some().into(),
            attempt.is_unfinished().into(),
            attempt.needs_download().into(),
            (!attempt.particulars.reviews.is_empty()).into(),
            attempt.cost().micros().into(),
            task.map(|task| task.id.as_str()).into(),
            task.and_then(|task| task.alias.as_ref()).map(TaskId::as_str).into(),
            attempt.intended_at.as_microsecond().into(),
        ])
    }
}

macro_rules! columns {
    ($($name:ident)*) => { [$(stringify!($name)),*] };
}

/// The columns of an attempt in every store. All but the record repeat facts of it for queries and indexes.
pub(super) const COLUMNS: [&str; 20] = columns!(
    id batch job fingerprint normalized model labels service key state charge is_declared is_unfinished needs_download is_reviewed
    price_micros task alias intended_us record
);

/// The columns that keep their first value. An update that does not name them spares their indexes.
pub(super) const FIXED: [&str; 7] = ["id", "batch", "fingerprint", "normalized", "model", "labels", "intended_us"];

/// A value of the ledger that can't be read or written. Another program changed it, and a guess would cost money.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// The record of an attempt.
    #[error("can't read attempt {attempt}")]
    Record { attempt: i64, source: serde_json::Error },
    /// Another value.
    #[error("can't read the ledger: its {column} is {value:?}")]
    Value { column: &'static str, value: String },
    /// The attempts of some time.
    #[error("its attempts cost {sum:#}, and {counted:#} by the sums for limits")]
    Sums { sum: Usd, counted: Usd },
    /// A value without JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl Unreadable {
    pub(super) fn value(column: &'static str, value: &str) -> Self {
        Self::Value { column, value: value.to_owned() }
    }
}

/// Reads a record. Shares the account of the previous attempt, if it is equal.
pub(super) fn read(id: i64, record: &str, before: Option<&Attempt>) -> Result<Attempt, Unreadable> {
    let attempt =
        serde_json::from_str::<Attempt>(record).map_err(|source| Unreadable::Record { attempt: id, source })?;
    Ok(match before {
        Some(before) if before.account == attempt.account => Attempt { account: before.account.clone(), ..attempt },
        _ => attempt,
    })
}

/// A value of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Value<'v> {
    Number(i64),
    Text(Option<Cow<'v, str>>),
}

macro_rules! values {
    ($($from:ty: $it:ident => $value:expr;)+) => {$(
        impl<'v> From<$from> for Value<'v> {
            fn from($it: $from) -> Self {
                $value
            }
        }
    )+};
}
values! {
    i64: number => Self::Number(number);
    bool: is => Self::Number(is.into());
    String: text => Self::Text(Some(text.into()));
    Option<&'v str>: text => Self::Text(text.map(Into::into));
}

impl<'v, T: AsRef<str> + ?Sized> From<&'v T> for Value<'v> {
    fn from(text: &'v T) -> Self {
        Self::Text(Some(text.as_ref().into()))
    }
}

/// The kind of a ledger. The two never mix: a sandbox run must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}
