//! A ledger of whichever store, for those who are told at run time which it is.
//!
//! [`either`] is one of the two, [`copy`] carries all of one into another.

mod copy;
mod either;

pub use copy::BackupError;
pub use either::{AnyBatch, AnyLedger};
