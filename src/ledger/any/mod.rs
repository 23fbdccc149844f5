//! A ledger of any store.
//!
//! [`mod@ledger`] asks the store that it is in, [`address`] names one, [`copy`] carries everything from one store into another.

mod address;
mod copy;
mod ledger;

pub use address::LedgerAddress;
pub use ledger::Ledger;
