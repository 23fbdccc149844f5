//! The columns of an attempt.

/// The columns of an attempt: its record, and what repeats a part of it for queries ([`Columns`](crate::ledger::row::Columns)).
pub(super) const COLUMNS: &str = "id, batch, job, fingerprint, normalized, model, labels, service, key, state, charge, \
    is_declared, is_unfinished, needs_download, price_micros, task, alias, intended_us, record";

/// The place of the record among the columns.
pub(super) const RECORD: usize = 18;
