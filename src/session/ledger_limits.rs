//! Spend limits over all manifests, kept in a ledger.

use jiff::tz::TimeZone;

use super::refusal::Refusal;
use crate::domain::{Freeze, Label, Usd};
use crate::ledger::{Controls, Ledger, LedgerLimit, Span};

/// A change to the limits of a ledger. `None` leaves a value as it is.
#[derive(Clone, Debug, Default)]
pub struct LimitChange {
    /// The label of the amounts, or `None` for all spending.
    pub label: Option<Label>,
    /// The limit per day; `Some(None)` removes it.
    pub day: Option<Option<Usd>>,
    /// The limit per month; `Some(None)` removes it.
    pub month: Option<Option<Usd>>,
    /// The IANA time zone of days and months, or `None` for that of this machine.
    pub zone: Option<String>,
    /// The active tasks of all runners together; `Some(None)` removes the limit. Only for a database.
    pub slots: Option<Option<u32>>,
    /// The reason that purchases are frozen; `Some(None)` unfreezes them.
    pub freeze: Option<Option<String>>,
}

/// The limits of a ledger.
#[derive(Clone, Debug)]
pub struct LedgerLimits {
    /// Each limit, with the amount used.
    pub limits: Vec<(LedgerLimit, Usd)>,
    /// The active tasks of all runners together, if they are limited.
    pub slots: Option<i64>,
    /// The freeze, if purchases are frozen.
    pub freeze: Option<Freeze>,
}

impl LimitChange {
    /// Makes the change, and creates a missing ledger. Changes nothing in a file if the change limits slots.
    pub async fn apply(&self, ledger: &Ledger) -> Result<(), Refusal> {
        match (self.slots, ledger.database()) {
            (None, _) => {}
            (Some(slots), Some(database)) => database.set_slots(slots).await?,
            (Some(_), None) => return Err(Refusal::SlotsOfFile),
        }
        // A machine without a named zone counts in UTC, and `limits` shows that.
        let own_zone = || TimeZone::system().iana_name().unwrap_or("UTC").to_owned();
        for (span, amount) in [(Span::Day, self.day), (Span::Month, self.month)] {
            let Some(amount) = amount else { continue };
            let (usd, zone) = (amount.unwrap_or_default(), self.zone.clone().unwrap_or_else(own_zone));
            let limit = LedgerLimit { label: self.label.clone(), span, usd, zone };
            ledger.set_limit(limit, amount.is_some()).await?;
        }
        if let Some(why) = &self.freeze {
            ledger.set_freeze(why.as_deref()).await?;
        }
        Ok(())
    }
}

impl LedgerLimits {
    /// Reads the limits of a ledger.
    pub async fn of(ledger: &Ledger) -> Result<Self, Refusal> {
        let Controls { now, limits: all, freeze } = ledger.controls().await?;
        let mut limits = Vec::new();
        for limit in all {
            let used = ledger.used_since(limit.at(now).since, limit.label.clone()).await?;
            limits.push((limit, used));
        }
        let slots = match ledger.database() {
            Some(database) => database.slots().await?,
            None => None,
        };
        Ok(Self { limits, slots, freeze })
    }
}
