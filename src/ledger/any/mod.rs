//! A ledger of any store.
//!
//! [`mod@ledger`] asks the store that it is in, [`copy`] carries everything from one store into another.

mod copy;
mod ledger;

pub use ledger::Ledger;
