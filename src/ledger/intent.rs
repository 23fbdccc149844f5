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
    /// The newest attempt of the job in the plan. A newer one is another run's.
    pub known: Option<AttemptId>,
    /// The manifest's limits over all batches of the ledger.
    pub limits: Vec<SpendLimit>,
    /// The approved plan that includes it.
    pub approval: Option<Approval>,
    /// The time of a submission with a known task by another program, or `None` for a submission now.
    pub imported_at: Option<Timestamp>,
    /// The number of attempts in other batches for this normalized request, by the plan. With more, the intent is refused. `None` if the
    /// request may repeat them: for a retry, and in the sandbox.
    pub paid_elsewhere: Option<u32>,
}

impl Intent {
    /// One submission of a job without earlier attempts, limits, or an approval.
    pub fn new(job: &Job, account: Account) -> Self {
        Self::for_purchase(job.purchase.clone(), Request::normalized(&job.spec), account)
    }

    /// The same for a purchase with this normalized request.
    pub fn for_purchase(purchase: Purchase, normalized: Fingerprint, account: Account) -> Self {
        Self {
            purchase,
            normalized,
            account,
            known: None,
            limits: Vec::new(),
            approval: None,
            imported_at: None,
            paid_elsewhere: None,
        }
    }
}

/// The part of an approved plan about one job.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Approval {
    /// The digest of the plan.
    pub digest: Digest,
    /// The maximum number of submissions of the job. The ledger counts them, so a restarted run submits no more.
    pub most: u32,
}

/// A limit on the spending of all batches of a ledger since a time.
///
/// The ledger checks it in the transaction of the intent, so neither concurrency nor another run can exceed it. Unknown charges count in
/// full.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SpendLimit {
    /// `budget.day`, `budget.month`, or for a label `budget.labels.client.acme.month`.
    pub name: Arc<str>,
    /// The label to which it applies, or `None` for all spending.
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

    /// The key of its sum.
    pub(super) fn key(&self) -> (Option<Label>, i64) {
        (self.label.clone(), self.since.as_microsecond())
    }
}

/// A calendar period.
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

/// A limit on the spending of a ledger, or of a label, in a calendar period.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LedgerLimit {
    /// The label, or `None` for all spending.
    pub label: Option<Label>,
    /// The span.
    pub span: Span,
    /// The amount.
    pub usd: Usd,
    /// The time zone of the calendar, by its IANA name.
    pub zone: String,
}

impl LedgerLimit {
    /// Its key in a store. A limit of the same label and span replaces it.
    pub(super) fn key(&self) -> serde_json::Result<String> {
        serde_json::to_string(&(&self.label, self.span))
    }

    /// The name: `ledger.month`, or with its label `ledger.client.acme.month`.
    pub fn name(&self) -> String {
        let label = self.label.as_ref().map(|label| format!("{}.{}.", label.name, label.value)).unwrap_or_default();
        format!("ledger.{label}{}", self.span.name())
    }

    /// The limit at a time.
    pub fn spend_limit(&self, now: Timestamp) -> SpendLimit {
        let start = TimeZone::get(&self.zone).ok().and_then(|zone| self.span.start(now, &zone));
        // This machine may lack the zone, which must not loosen the limit: no day or month is longer.
        let longest = SignedDuration::from_hours(26 + if self.span == Span::Day { 0 } else { 30 * 24 });
        let earliest = || now.checked_sub(longest).unwrap_or(Timestamp::MIN);
        let since = start.unwrap_or_else(earliest);
        SpendLimit { name: self.name().into(), label: self.label.clone(), since, usd: self.usd }
    }
}

/// A little more than the timeout of a submission: the interface gives none (§2.2).
const RESPONSE: Duration = Duration::from_secs(190);

/// The times of runners that share a ledger.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Times {
    /// The time between two heartbeats.
    pub(super) heartbeat: Duration,
    /// The time from the last heartbeat until a runner loses its batches.
    pub(super) lease: Duration,
    /// The time after the end of a lease during which a response to a submission may arrive.
    pub(super) response: Duration,
    /// The time from an acknowledged intent to the latest first byte.
    pub(super) send: Duration,
    /// The maximum duration of a transaction. A longer one breaks its connection.
    pub(super) answer: Duration,
    /// The maximum wait for another transaction.
    pub(super) lock: Duration,
    /// The maximum idle time of a transaction, which blocks others.
    pub(super) standstill: Duration,
    /// The time until a write to an unreachable ledger fails.
    pub(super) outage: Duration,
    /// The wait before a deferred intent is tried again.
    pub(super) poll_interval: Duration,
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
            poll_interval: after(Duration::from_millis(500)),
        }
    }
}

/// The factor by which tests shorten them.
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
    fn month_starts_in_the_zone_of_the_limit() {
        let limit = |zone: &str, span| LedgerLimit { label: None, span, usd: Usd::ZERO, zone: zone.to_owned() };
        let now: Timestamp = "2026-11-30T23:30:00Z".parse().expect("a time");
        let since = |zone, span| limit(zone, span).spend_limit(now).since.to_string();
        assert_eq!(since("Europe/Berlin", Span::Month), "2026-11-30T23:00:00Z");
        assert_eq!(since("UTC", Span::Month), "2026-11-01T00:00:00Z");
        assert_eq!(since("America/New_York", Span::Day), "2026-11-30T05:00:00Z");
        assert_eq!(since("Mars/Olympus", Span::Day), "2026-11-29T21:30:00Z");
        assert_eq!(since("Mars/Olympus", Span::Month), "2026-10-30T21:30:00Z");
    }
}
