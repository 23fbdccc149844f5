//! Ledger limits, and the times that they count by. They hold for every run, and a manifest can only tighten them.

use std::time::Duration;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::intent::SpendLimit;
use crate::domain::{Label, Usd};

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
        let began = |zone: TimeZone| {
            let today = now.to_zoned(zone.clone()).date();
            let first = match self.span {
                Span::Day => today,
                Span::Month => today.first_of_month(),
            };
            first.to_zoned(zone).map(|start| start.timestamp())
        };
        // A zone that only the owner's machine knows must not loosen the limit here: no day or month is longer.
        let longest = SignedDuration::from_hours(26 + if self.span == Span::Day { 0 } else { 30 * 24 });
        let earliest = || now.checked_sub(longest).unwrap_or(Timestamp::MIN);
        let since = TimeZone::get(&self.zone).and_then(began).unwrap_or_else(|_| earliest());
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
