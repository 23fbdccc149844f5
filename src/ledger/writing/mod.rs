//! Writes to a ledger: locked batches send commands to the one writer of a store.
//!
//! [`locked`] is a locked batch, which sends commands to the [`store`]. [`mod@writer`] groups them into transactions, which do the [`operations`] by the rules.
//! [`store`] is what a store must be able to do.

mod locked;
pub(super) mod operations;
mod store;
mod writer;

pub(super) use locked::WriterHandle;
pub use locked::{LockedBatch, Sharing};
pub(super) use store::SharingCommand;
pub(super) use store::{Locked, Store, Transaction};
pub(super) use writer::at_batch;
