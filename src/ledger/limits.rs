//! Ledger limits: they hold for every run, and a manifest can only tighten them.

use jiff::Timestamp;
use jiff::tz::TimeZone;
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
        // A zone that is not known here must not loosen a limit: in UTC a day may begin a little sooner or later, and is a day.
        let zone = TimeZone::get(&self.zone).unwrap_or(TimeZone::UTC);
        let today = now.to_zoned(zone.clone()).date();
        let first = match self.span {
            Span::Day => today,
            Span::Month => today.first_of_month(),
        };
        let since = first.to_zoned(zone).map_or(Timestamp::MIN, |start| start.timestamp());
        SpendLimit { name: self.name().into(), label: self.label.clone(), since, usd: self.usd }
    }
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
    }
}
