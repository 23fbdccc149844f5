//! The time of the next poll of a task. Pure: ages in, an age out.
//!
//! # Value of a poll
//!
//! A poll too many costs a request. A poll too late leaves a finished task unnoticed, and its slot occupied. For a task
//! that ends at the rate h (the share of running tasks that ends per second), polls at a density n per second cost n·κ
//! + h/2n, where κ is the waiting time that one poll is worth. The minimum is at
//!
//! > n = √(h / 2κ)
//!
//! (Keller's optimum for inspections, 1974). So the next poll is where the integral of n reaches one: no poll where no
//! task can end, and many where the end is near. κ is `POLL_WORTH` of the mean duration of the class, so the cadence is
//! the same for tasks of seconds and of minutes.
//!
//! # Distribution of the end
//!
//! [`mixture`] has the arithmetic: blocks of constant probability, for which h is piecewise simple and the integral has
//! a closed form. [`learned`] makes the blocks for each class of tasks (model, length of video) from:
//!
//! - the documented duration (interface §4) and a tail behind it, which fade as tasks finish;
//!
//! - each task of the class that finished in this run, with a spread of some percent: between the last poll that saw it
//!   running and the first that saw it finished, or as the service reports;
//!
//! - progress: the age over the share that is done, or, once progress has grown, the line through its first and last
//!   observation, because a queued task counts from its start. The outcomes of earlier predictions, by quarter of
//!   progress, correct a service that starts late or slows down at the end. Prediction and class share the weight by
//!   how often each was better, so wrong progress loses its weight. A prediction counts only if progress has grown: a
//!   task that stalls outlives its prediction, and the class takes over.
//!
//! # Bounds
//!
//! No poll happens before a task can be ready, because the integral is zero there. A task may be ready when it ends
//! within the next `SOON` with a probability of at least `READY`. From then on, it is polled at least every
//! `--poll-interval`, and never within `--poll-floor` of the last poll. `--first-poll` replaces that moment. Tasks that
//! were submitted together get thresholds around one, so that their polls are spread.

mod learned;
mod mixture;
mod schedule;

pub(super) use schedule::{Cadence, Class, Sight};
