//! Runs a plan: one bounded stream of work, one poller for all active tasks.
//!
//! # Guarantees
//!
//! - Pace, slow start, slots, spend guard, circuit breakers, and the time limit apply to the whole run.
//! - A submission follows its durable intent, and is sent at most once.
//! - Polls never block submissions.
//!
//! # Design
//!
//! [`run`] is the pipeline. Active tasks and downloads start immediately, due jobs wait for a slot in manifest order. A job has its slot from the
//! intent to the terminal state.
//!
//! [`job_runner`] takes one job from its intent to its video. [`submit`] records the intent and sends once, [`response`] records. The job then waits in the
//! [`poller`], which all active tasks share: it polls by the times of [`schedule`], and acts on each response. [`watched`] is the state machine of a
//! task; [`identity`] decides whether a response is about the task. In the end, the job releases its slot and records its outcome, and
//! [`fetcher`] downloads the video.
//!
//! # Limits
//!
//! | Module | Limits |
//! |---|---|
//! | [`gateway`] | submissions to a service that doesn't respond |
//! | [`spend_guard`] | money, by a reservation before each submission |
//! | [`slow_start`] | submissions in flight, and doubts in a row |
//! | [`slots`] | active tasks |
//! | [`pace`] | requests per second, by rejections and `--rps` |
//! | [`poller`] | polls in flight |
//! | [`settings`] | submissions, and with a signal polls |
//!
//! [`identity`] also notices a task that differs from its request, and [`submit`] gets URLs for local images. Submissions and polls share the
//! [`gateway`]. Nothing here prints: events are [`RunEvent`]s.

mod event;
mod fetcher;
mod gateway;
mod identity;
mod job_runner;
mod pace;
mod poller;
mod response;
mod run;
mod schedule;
mod settings;
mod slots;
mod slow_start;
mod spend_guard;
mod submit;
mod watched;

pub use event::{FetchedVideo, LeaveReason, RunEvent};
pub use identity::echo_differences;
pub(crate) use identity::{Identity, ReportOwner};
pub use run::Engine;
pub use settings::{Outcome, Settings, Stop, StopReason};
