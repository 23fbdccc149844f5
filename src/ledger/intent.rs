//! The record that is durable before a submission leaves, and the limits that it is held to.

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::{Account, AttemptId, Digest, Fingerprint, Job, Label, Labels, Purchase, Request, Usd};

/// An imminent submission.
#[derive(Clone, Debug)]
pub struct Intent {
    /// What it buys.
    pub purchase: Purchase,
    /// The fingerprint of the normalized request.
    pub normalized: Fingerprint,
    /// The account that will own the task.
    pub account: Account,
    /// The newest attempt that was known when the job was found to be due. A newer one of this job is another run's.
    pub known: Option<AttemptId>,
    /// Limits over all batches of the ledger, which the ledger itself keeps.
    pub limits: Vec<SpendLimit>,
    /// The approved plan that it is a part of.
    pub approval: Option<Approval>,
    /// The time of a submission that another program made and whose task is known, or `None` for a submission now.
    pub imported_at: Option<Timestamp>,
    /// The number of attempts elsewhere that the plan knew for this normalized request. If there are more by now, the intent is refused.
    /// `None` if the request may repeat them: for a retry, and in the sandbox.
    pub paid_elsewhere: Option<u32>,
}

impl Intent {
    /// To submit this job once, under no limit and as a part of no approved plan, where no attempt of it is known.
    pub fn new(job: &Job, account: Account) -> Self {
        Self {
            purchase: job.purchase.clone(),
            normalized: Request::normalized(&job.spec),
            account,
            known: None,
            limits: Vec::new(),
            approval: None,
            imported_at: None,
            paid_elsewhere: None,
        }
    }
}

/// A plan that someone approved, as far as it is about one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    /// The digest of the plan.
    pub digest: Digest,
    /// The number of times that the job may be bought as a part of it. The ledger counts, so no restarted run buys
    /// more.
    pub most: u32,
}

/// A limit on what all batches of a ledger may spend together since a moment.
///
/// The ledger checks it in the transaction that writes the intent, so that neither concurrency nor another run of
/// another batch can overshoot. What is unknown counts in full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpendLimit {
    /// `budget.day`, `budget.month`, or with the label that it is about `budget.labels.client.acme.month`.
    pub name: Arc<str>,
    /// It is about what has this label, and otherwise about everything.
    pub label: Option<Label>,
    /// The beginning of the day or the month.
    pub since: Timestamp,
    /// The amount.
    pub usd: Usd,
}

impl SpendLimit {
    /// Returns whether it applies to these labels.
    pub(super) fn is_about(&self, labels: &Labels) -> bool {
        self.label.as_ref().is_none_or(|label| label.is_among(labels))
    }

    /// Identifies the sum that it is checked against.
    pub(super) fn key(&self) -> (Option<Label>, i64) {
        (self.label.clone(), self.since.as_microsecond())
    }
}

/// A span of the calendar.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// From midnight on.
    Day,
    /// From midnight of the first on.
    Month,
}

impl Span {
    /// Its name in the ledger.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    /// The start of the day or the month that a time is in, in a time zone. `None` at the edge of the calendar.
    pub(crate) fn start(self, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let today = now.to_zoned(zone.clone()).date();
        let first = match self {
            Self::Day => today,
            Self::Month => today.first_of_month(),
        };
        first.to_zoned(zone.clone()).ok().map(|start| start.timestamp())
    }
}

/// A limit on what everything in a ledger, or what has a label, may cost in a span.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerLimit {
    /// The label, or nothing for everything.
    pub label: Option<Label>,
    /// The span.
    pub span: Span,
    /// The amount.
    pub usd: Usd,
    /// The time zone whose calendar counts, by its IANA name.
    pub zone: String,
}

impl LedgerLimit {
    /// Identifies it in a store: a limit of the same label and span takes its place.
    pub(super) fn key(&self) -> serde_json::Result<String> {
        serde_json::to_string(&(&self.label, self.span))
    }

    /// The name: `ledger.month`, or with its label `ledger.client.acme.month`.
    pub fn name(&self) -> String {
        let span = self.span.name();
        match &self.label {
            None => format!("ledger.{span}"),
            Some(label) => format!("ledger.{}.{}.{span}", label.name, label.value),
        }
    }

    /// The limit as it holds at a moment.
    pub fn at(&self, now: Timestamp) -> SpendLimit {
        let start = TimeZone::get(&self.zone).ok().and_then(|zone| self.span.start(now, &zone));
        // A zone that only the owner's machine knows must not loosen the limit here: no day or month is longer.
        let longest = SignedDuration::from_hours(26 + if self.span == Span::Day { 0 } else { 30 * 24 });
        let earliest = || now.checked_sub(longest).unwrap_or(Timestamp::MIN);
        let since = start.unwrap_or_else(earliest);
        SpendLimit { name: self.name().into(), label: self.label.clone(), since, usd: self.usd }
    }
}

/// The timeout of a submission, and some more: the interface gives none (§2.2).
const RESPONSE: Duration = Duration::from_secs(190);

/// The times of runners that share a ledger.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Times {
    /// The time between two heartbeats.
    pub(super) heartbeat: Duration,
    /// The time after the last heartbeat for which a runner keeps its batches.
    pub(super) lease: Duration,
    /// The time after the end of a lease in which the response to a submission may still come.
    pub(super) response: Duration,
    /// The time after an acknowledged intent within which the first byte leaves, or never.
    pub(super) send: Duration,
    /// The maximum length of a transaction, after which its connection counts as broken.
    pub(super) answer: Duration,
    /// The maximum wait of a transaction for another.
    pub(super) lock: Duration,
    /// The maximum time for which a transaction is idle: it must not block others.
    pub(super) standstill: Duration,
    /// The time for which an unreachable ledger is tried again before a write fails.
    pub(super) outage: Duration,
    /// The wait before a deferred intent is tried again.
    pub(super) look_again: Duration,
}

impl Times {
    /// The times of release builds.
    pub(super) fn usual() -> Self {
        let time_scale = time_scale();
        let after = |time: Duration| time.div_f64(time_scale);
        Self {
            heartbeat: after(Duration::from_secs(5)),
            lease: after(Duration::from_mins(1)),
            response: after(RESPONSE),
            send: after(Duration::from_secs(10)),
            answer: after(Duration::from_mins(1)),
            lock: after(Duration::from_secs(30)),
            standstill: after(Duration::from_secs(5)),
            outage: after(Duration::from_mins(5)),
            look_again: after(Duration::from_millis(500)),
        }
    }
}

/// The factor by which a test shortens them.
#[cfg(debug_assertions)]
fn time_scale() -> f64 {
    let time_scale = std::env::var("SHOTLIST_TIME_SCALE").ok().and_then(|time_scale| time_scale.parse().ok());
    time_scale.filter(|time_scale: &f64| (1.0..=1000.0).contains(time_scale)).unwrap_or(1.0)
}

#[cfg(not(debug_assertions))]
fn time_scale() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_where_the_owner_lives() {
        let limit = |zone: &str, span| LedgerLimit { label: None, span, usd: Usd::ZERO, zone: zone.to_owned() };
        let now: Timestamp = "2026-11-30T23:30:00Z".parse().expect("a time");
        let since = |zone, span| limit(zone, span).at(now).since.to_string();
        assert_eq!(since("Europe/Berlin", Span::Month), "2026-11-30T23:00:00Z");
        assert_eq!(since("UTC", Span::Month), "2026-11-01T00:00:00Z");
        assert_eq!(since("America/New_York", Span::Day), "2026-11-30T05:00:00Z");
        assert_eq!(since("Mars/Olympus", Span::Day), "2026-11-29T21:30:00Z");
        assert_eq!(since("Mars/Olympus", Span::Month), "2026-10-30T21:30:00Z");
    }
}
