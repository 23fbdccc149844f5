//! What every store of the ledger has to keep, written against its door alone.
//!
//! [`store`] is a store that was made for one test, and the macro that runs all of the suite on it. [`holding`] is about runners, [`money`] about limits,
//! approvals and what people and bills say, [`tasks`] about who bought what, [`lives`] about any order of events, [`twins`] about any sequence of operations, and [`copies`] about a
//! ledger that is copied.

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
