//! A ledger in memory, for tests: the same rules, and nothing that is slow or fails by itself.
//!
//! [`mod@ledger`] answers questions and locks batches, [`store`] is what the writer writes.

mod ledger;
mod store;

pub use ledger::MemoryLedger;
