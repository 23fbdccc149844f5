//! The rules of the ledger: pure, and the same for every store.
//!
//! [`admit`] decides whether an intent is written, [`mod@apply`] changes an attempt by an event, or by a crash of its run.
//! [`task_names`] gives each task ID one owner, and [`spent`] has the changes of a ledger and the amount that limits count.

mod admit;
mod apply;
mod spent;
mod task_names;
#[cfg(test)]
mod tests;

pub(super) use admit::{Asked, Facts, OtherRunnersFacts, Slots, SpanKey};
pub(super) use apply::apply;
pub(super) use apply::recover;
pub(super) use spent::Changes;
pub(super) use spent::{QUARTER_US, SpentChange, Sums, quarter};
pub(super) use task_names::{Named, Owners};
