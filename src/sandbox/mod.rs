//! The simulator: the interface document as a real HTTP server on loopback.
//!
//! It takes what the service takes and refuses what it refuses (the limits are the catalog's), lets tasks wait, run
//! and end in time that can be sped up, hands out a real, playable MP4 for each, and keeps a list of what it charged at
//! `/_sandbox/ledger`, so that a test or a rehearsal can compare. It charges every accepted submission at once; the
//! interface says so for family A and nothing for family B.
//!
//! It can be made to misbehave, so that users and tests can rehearse what services do on bad days: [`Fault`] lists the
//! ways, each with a probability of its own, and the number of active tasks can be limited.
//!
//! A task's whole life is written into its id ([`task`]), so another process of the simulator can go on where one was
//! killed: `run --sandbox` can be interrupted and continued like the real thing.

mod faults;
mod limits;
mod server;
mod task;

pub use faults::Fault;
pub use server::{Options, Sandbox, start};
