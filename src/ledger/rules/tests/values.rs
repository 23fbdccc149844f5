//! Intents, attempts, and facts.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::{
    Account, AttemptState, BatchKey, Charging, Fingerprint, JobId, Label, Labels, Purchase, Request, Usd,
};
use crate::ledger::row::Row;
use crate::ledger::rules::{BatchIntent, Facts, OtherRunnersFacts, SlotStatus};
use crate::ledger::{Intent, LedgerError, SpendLimit};

pub(super) const BATCH: i64 = 7;
pub(super) const RUNNER: i64 = 3;
pub(super) const HOUR: i64 = 3_600_000_000;

pub(super) fn usd(micros: i64) -> Usd {
    Usd::from_micros(micros)
}

pub(super) fn key(batch: &str) -> BatchKey {
    BatchKey { name: "n".into(), batch: batch.into() }
}

/// A batch whose purchases this one may repeat.
pub(super) fn elsewhere(name: &str) -> BatchKey {
    BatchKey { name: name.into(), batch: "today".into() }
}

pub(super) fn label(value: &str) -> Label {
    Label { name: "client".into(), value: value.into() }
}

pub(super) fn limit(name: &str, value: Option<&str>, micros: i64) -> SpendLimit {
    SpendLimit { name: name.into(), label: value.map(label), since: Timestamp::UNIX_EPOCH, usd: usd(micros) }
}

/// An intent for 0.90 USD.
pub(super) fn intent(job: &str) -> Intent {
    Intent {
        purchase: Purchase {
            job: JobId::new(job).expect("an ID"),
            request: Request::stored("{}".into(), Fingerprint::stored(format!("fingerprint of {job}"))),
            model: "alpha-2".into(),
            price: usd(900_000),
            charging: Charging::AtSubmission,
            typical_s: (60, 180),
            labels: Labels::new(),
            output: None,
            local_images: None,
        },
        normalized: Fingerprint::stored(format!("normalized {job}")),
        account: Account { service: "s".into(), key: "k".into() },
        known: None,
        limits: Vec::new(),
        approval: None,
        imported_at: None,
        paid_elsewhere: None,
    }
}

pub(super) fn others() -> OtherRunnersFacts {
    OtherRunnersFacts {
        runner: RUNNER,
        is_expired: false,
        account: intent("a").account,
        slots: SlotStatus::Free(2),
        retry_after: Duration::from_millis(5),
    }
}

pub(super) fn admit(facts: &mut Facts, intent: &Intent) -> Result<Row, LedgerError> {
    facts.admit(&BatchIntent { batch: BATCH, key: &key("today"), intent })
}

/// An admitted attempt of a job in a state.
pub(super) fn row(job: &str, id: i64, state: AttemptState) -> Row {
    let mut row = admit(&mut Facts { newest: id - 1, ..Facts::default() }, &intent(job)).expect("nothing forbids it");
    row.attempt.state = state;
    row
}

pub(super) fn with_attempts(rows: impl IntoIterator<Item = Row>) -> Facts {
    let mut facts = Facts { newest: 20, ..Facts::default() };
    for row in rows {
        facts.attempts.entry((BATCH, row.attempt.job().clone())).or_default().push(row);
    }
    facts
}
