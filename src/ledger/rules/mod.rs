//! The rules of the ledger: pure, and the same for every store.
//!
//! [`admit`] decides whether an intent is written. [`mod@apply`] changes an attempt by an event, or by a crash of its run, gives each task ID one
//! owner, and sums up the amounts that limits count.

mod admit;
mod apply;
#[cfg(test)]
mod tests;

pub(super) use admit::{BatchIntent, Facts, OtherRunnersFacts, SlotStatus, SpanKey};
pub(super) use apply::{Changes, Owners, QUARTER_US, SpentChange, Sums, apply, quarter, recover};
