//! Runs a plan: one bounded stream of submissions, one poller for every outstanding task.
//!
//! # How it fits together
//!
//! [`run`] is the pipeline, top to bottom. Each due job waits for a slot, in manifest order; a slot is a task outstanding
//! at the service, from the intent until its final word. [`submit`] writes the intent, sends once, and writes the
//! answer. [`poller`] owns every outstanding task in one delay queue and decides who is looked at next; [`cadence`] says
//! when, and [`judge`] what an answer means. At its final word the poller gives a task's slot back, and the job's future writes the word down. Then [`fetcher`]
//! fetches the video, to where the plan says. [`job_runner`] is the way of one job through all of these. [`whose`] says whether an answer is about the task that was asked for, and
//! [`watched`] is what was seen of one.
//!
//! # What holds it back
//!
//! [`budget`] reserves a price before its submission, so that concurrency can't overshoot. [`trust`] bounds what one bad
//! moment can put in doubt, and stops when doubts come in a row. [`slots`] bounds what is
//! outstanding, and learns how much of it the service takes. [`pace`] holds a wait that the service asked for, for
//! everybody, and the [`rate`] that it takes, and [`lanes`] the number of looks under way; [`contact`] knows whether there is an answer at all.
//! [`echo`] notices a service that makes something else than was asked for. [`stop`] is the reason to submit no more, and whether to go on looking. [`mod@line`] is what submissions and looks share
//! of these.
//!
//! Nothing here prints: what happens is told as [`RunEvent`]s, the one language of progress, log and tests.

mod budget;
mod cadence;
mod contact;
mod echo;
mod event;
mod fetcher;
mod job_runner;
mod judge;
mod lanes;
mod line;
mod pace;
mod poller;
mod rate;
mod run;
mod settings;
mod slots;
mod stop;
mod submit;
mod trust;
mod watched;
mod whose;

pub use event::{Leaving, RunEvent};
pub use run::{Engine, Outcome};
pub use settings::Settings;
pub use stop::{Stop, StopReason};
