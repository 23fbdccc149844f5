//! The rules of the ledger: pure, and the same for every store.
//!
//! [`admit`] decides whether an intent is written, [`mod@apply`] changes an attempt by an event, [`mod@recover`] by a crash of its run.
//! [`task_names`] gives each task ID one owner, and [`spent`] defines the amount that limits count.

mod admit;
mod apply;
mod recover;
mod spent;
mod task_names;
#[cfg(test)]
mod tests;

pub(super) use admit::{Asked, Facts, OtherRunnersFacts, Slots, SpanKey, Taken};
pub(super) use apply::apply;
pub(super) use recover::recover;
pub(super) use spent::{Period, QUARTER_US, RunChange, SpentChange, Sums};
pub(super) use task_names::{Named, Owners};
