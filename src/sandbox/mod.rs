//! The simulator: the interface document as a real HTTP server on loopback.
//!
//! It accepts and rejects requests by the catalog, runs tasks in real or accelerated time, serves a playable MP4 for each, and lists its charges at
//! `/_sandbox/ledger` for tests. It charges each accepted submission immediately, as documented for family A; for family B, the interface has no rule.
//!
//! Users and tests can rehearse faults: [`Fault`] lists them, each with a probability. The number of active tasks can be limited.
//!
//! The ID of a task has its whole state ([`task`]), so another process can continue after a kill: `run --sandbox` resumes like a real run.

mod faults;
mod server;
mod task;

pub(crate) use faults::Fault;
pub(crate) use server::{Options, Sandbox, start};
