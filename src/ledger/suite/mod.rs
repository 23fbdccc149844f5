//! Tests that every store of the ledger must pass, through its interface.
//!
//! [`store`] has a fresh store for one test, and the macro that runs the whole suite on it. [`money`] is about limits, approvals,
//! declarations, and bills, [`tasks`] about runners and the owners of tasks, [`copies`] about any order of events and a copied ledger, and
//! [`twins`] about any sequence of operations.

mod copies;
mod money;
pub(in crate::ledger) mod store;
mod tasks;
mod twins;

pub(in crate::ledger) use copies::*;
pub(in crate::ledger) use money::*;
pub(in crate::ledger) use store::{Fresh, for_store};
pub(in crate::ledger) use tasks::*;
pub(in crate::ledger) use twins::*;
