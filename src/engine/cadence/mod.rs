//! When to poll a task next. Pure: ages in, an age out.
//!
//! # What a poll is worth
//!
//! A poll too many costs a request; a poll too late leaves a finished task, and its slot, unnoticed. For a task that
//! ends at the rate h (the share of those still running that ends per second), polls at a density n per second cost
//! n·κ + h/2n, where κ is how many seconds of waiting one poll is worth. That is least at
//!
//! > n = √(h / 2κ)
//!
//! (Keller's optimum for inspections, 1974), so the next poll stands where the integral of n reaches one: none where
//! nothing can end, dense where the end is near. κ is `POLL_WORTH` of the class's mean time, so the cadence is the same
//! for tasks of seconds and of minutes.
//!
//! # What is thought of the end
//!
//! [`mixture`] holds the arithmetic: blocks of even probability, of which h is piecewise simple and the integral above
//! has a closed form. [`learned`] makes the blocks, for each class of tasks (model, length of video):
//!
//! - the typical time of the document (interface §4) and a tail behind it, which fade as tasks finish;
//! - the time of each task of the class that finished in this run, give or take some percent: between the last poll that
//!   saw it unfinished and the one that saw it finished, or as the service itself says;
//! - what progress promises: the age over the share that is done; or, once it was seen to grow, the line through the first and the last that was
//!   seen, because a task that waits in a queue counts from when it is begun. What came of earlier promises of the same kind, by quarter of
//!   progress, corrects a service that starts late or slows down at the end. The promise and the class share the probability by how
//!   often each foretold an end better, so progress that lies loses its say. A promise counts only if progress grew: a
//!   task that stalls outlives its promise, and the class takes over.
//!
//! # The bounds
//!
//! Nothing is asked before a task can be ready: the integral is zero there. Once a task may be ready, which is when it
//! ends within the next `SOON` with a probability of at least `READY`, it is polled every
//! `--poll-interval` at the latest, and never sooner than `--poll-floor` after the last poll. With `--first-poll` the
//! user says when that is. Tasks submitted together get thresholds around one, so that they
//! don't ask together. A first poll that finds a task finished earlier than any was thought to be moves the first polls
//! of all others of its class.

mod learned;
mod mixture;
mod schedule;

pub(super) use schedule::{Cadence, Class, Sight};
