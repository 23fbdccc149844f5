//! Runs a plan: one bounded stream of submissions, one poller for every outstanding task.
//!
//! # How it fits together
//!
//! [`run`] is the pipeline, top to bottom. Each due job waits for a slot, in manifest order; a slot is a task outstanding
//! at the service, from the intent until its final word. [`submit`] writes the intent, sends once, and writes the
//! answer. [`poller`] owns every outstanding task in one delay queue and decides who is looked at next; [`cadence`] says
//! when. A job's future waits for the poller's word, gives its slot back, and writes the word down.
//!
//! # What holds it back
//!
//! [`budget`] reserves a price before its submission, so that concurrency can't overshoot. [`pace`] holds a wait that the
//! service asked for, for everybody. [`stop`] is the reason to submit no more, and whether to go on looking.
//!
//! Nothing here prints: what happens is told as [`RunEvent`]s, the one language of progress, log and tests.

mod budget;
mod cadence;
mod event;
mod pace;
mod poller;
mod run;
mod settings;
mod stop;
mod submit;

pub use event::{Leaving, RunEvent};
pub use run::{Engine, Outcome};
pub use settings::Settings;
pub use stop::{Stop, StopReason};
