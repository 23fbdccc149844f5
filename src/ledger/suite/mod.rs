//! Tests that every store of the ledger must pass, written against its interface alone.
//!
//! [`store`] has a fresh store for one test, and the macro that runs the whole suite on it. [`holding`] is about
//! runners, [`money`] about limits, approvals, declarations, and bills, [`tasks`] about owners of tasks, [`lives`]
//! about any order of events, [`twins`] about any sequence of operations, and [`copies`] about a copied ledger.

mod copies;
mod holding;
mod lives;
mod money;
pub(in crate::ledger) mod store;
mod tasks;
mod twins;

pub(in crate::ledger) use copies::*;
pub(in crate::ledger) use holding::*;
pub(in crate::ledger) use lives::*;
pub(in crate::ledger) use money::*;
pub(in crate::ledger) use store::{Fresh, for_store};
pub(in crate::ledger) use tasks::*;
pub(in crate::ledger) use twins::*;
