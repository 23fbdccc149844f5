//! The rows that a transaction writes, and what they change in the sums.

use super::spent::Sums;
use crate::ledger::row::Row;

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
        self.sums.add(row.batch, None, &row.attempt);
        self.new.push(row);
    }

    /// Replaces a row.
    pub(in crate::ledger) fn replace(&mut self, before: &Row, row: &'r Row) {
        self.sums.add(row.batch, Some(&before.attempt), &row.attempt);
        self.changed.push(row);
    }
}
