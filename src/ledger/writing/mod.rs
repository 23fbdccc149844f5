//! Writes to a ledger: locked batches send commands to the one writer of a store.
//!
//! [`locked`] is a locked batch, which sends commands to the [`store`]. [`mod@writer`] groups them into transactions, which do the [`operations`] by the rules.
//! [`store`] is what a store must be able to do.

mod locked;
pub(super) mod operations;
mod store;
mod writer;

pub use locked::LockedBatch;
pub(super) use locked::WriterHandle;
pub(super) use store::{Locked, Store, Transaction};
