//! Runs a plan: one bounded stream of submissions, one poller for every outstanding task.
//!
//! # How it fits together
//!
//! [`run`] is the pipeline, top to bottom. Each due job waits for a slot, in manifest order; a slot is a task outstanding
//! at the service, from the intent until its final word. [`job_runner`] takes one job all the way: [`submit`] writes the intent, sends once, and
//! writes the answer; then the task is handed over in a [`watch`] to the [`poller`], which owns every outstanding task in one delay queue and
//! decides who is polled next, when [`cadence`] says. What an answer means for its task is a pure state machine in [`watched`], which asks [`identity`] whether
//! the answer is about that task at all; what follows from it is in [`reactions`]. At its final word the poller gives a task's slot back,
//! the job writes the word down, counts it for the [`outcome`], and [`fetcher`] fetches the video, to where the plan says.
//!
//! # What holds it back
//!
//! [`first_look`] asks the service once before the first submission. [`known`] is what the plan knew, for the ledger to compare. [`spend_guard`] reserves a price before its submission, so that concurrency can't overshoot. [`slow_start`] bounds what one bad
//! moment can put in doubt, and stops when doubts come in a row. [`slots`] bounds what is outstanding, and learns how much of it the
//! service takes. [`rate_limit`] holds a wait that the service asked for, for everybody, and the [`learned_rate`] that it takes;
//! [`in_flight`] bounds the polls under way; [`connectivity`] knows whether there is an answer at all. [`echo`] notices a service that makes
//! something else than was asked for. [`stop`] is the reason to submit no more, and whether to go on polling. [`gateway`] is what submissions and polls share of these.
//!
//! Nothing here prints: what happens is told as [`RunEvent`]s, the one language of progress, log and tests.

mod cadence;
mod connectivity;
mod echo;
mod event;
mod feed;
mod fetcher;
mod first_look;
mod gateway;
mod identity;
mod in_flight;
mod job_runner;
mod known;
mod learned_rate;
mod outcome;
mod pictures;
mod poller;
mod rate_limit;
mod reactions;
mod record_task;
mod run;
mod settings;
mod slots;
mod slow_start;
mod spend_guard;
mod stop;
mod submit;
mod watch;
mod watched;

pub use echo::echo_differences;
pub use event::{FetchedVideo, LeaveReason, RunEvent};
pub use feed::Feed;
pub use outcome::Outcome;
pub use run::Engine;
pub use settings::Settings;
pub use stop::{Stop, StopReason};
