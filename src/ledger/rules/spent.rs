//! Changes of a ledger, and the amounts that limits count: the price of each attempt that may have been charged.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::domain::{Attempt, Charge};
use crate::ledger::row::Row;

/// The span of one sum, and of a line of `spend`, in microseconds: days begin at a quarter of an hour in every time zone.
pub(in crate::ledger) const QUARTER_US: i64 = 15 * 60 * 1_000_000;

/// The quarter of an hour that a time is in, counted from 1970.
pub(in crate::ledger) fn quarter(at: Timestamp) -> i64 {
    at.as_microsecond().div_euclid(QUARTER_US)
}

/// The changes of one commit to the sums that limits are checked against, in millionths of a dollar.
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
        let labels = after.particulars.labels.iter().map(|(label, value)| (label.clone(), value.clone()));
        for (label, value) in labels.chain([(String::new(), String::new())]) {
            *self.spent.entry((label, value, quarter)).or_default() += micros;
        }
    }

    /// The changes to sums by label and span, in the order in which every transaction makes them.
    pub(in crate::ledger) fn spent(&self) -> impl Iterator<Item = SpentChange<'_>> {
        self.spent.iter().map(|((label, value, quarter), micros)| SpentChange {
            label,
            value,
            quarter: *quarter,
            micros: *micros,
        })
    }
}

/// The price, unless nothing was charged for certain.
fn spent(attempt: &Attempt) -> i64 {
    if attempt.charge() == Charge::None { 0 } else { attempt.cost().micros() }
}

/// The changes of a transaction.
#[derive(Default)]
pub(in crate::ledger) struct Changes<'r> {
    /// New rows. Their jobs lose the reason why they were not sent.
    pub(in crate::ledger) new: Vec<&'r Row>,
    /// Rows that exist.
    pub(in crate::ledger) changed: Vec<&'r Row>,
    /// Their changes to the sums.
    pub(in crate::ledger) sums: Sums,
}

impl<'r> Changes<'r> {
    /// Adds a new row.
    pub(in crate::ledger) fn insert(&mut self, row: &'r Row) {
        self.sums.add(None, &row.attempt);
        self.new.push(row);
    }

    /// Replaces a row.
    pub(in crate::ledger) fn replace(&mut self, before: &Row, row: &'r Row) {
        self.sums.add(Some(&before.attempt), &row.attempt);
        self.changed.push(row);
    }
}
