//! Durations and progress of a class of tasks, as learned in this run.

use std::collections::VecDeque;

use super::mixture::{Block, Mixture};

/// The number of finished tasks to remember. Older ones are dropped, to follow a service that changes.
const REMEMBERED: usize = 24;
/// The number of outcomes to remember for each quarter of progress.
const REMEMBERED_RATIOS: usize = 12;
/// The spread of the prediction from one finished task, as a share of its duration.
const LIKENESS: f64 = 0.04;
/// The weight of the documented duration, in finished tasks. It fades as tasks finish.
const DOCUMENT_WEIGHT: f64 = 2.0;
/// The share of tasks assumed to exceed the documented duration, and their longest duration as a multiple of it.
const SLOWER: (f64, f64) = (0.1, 3.0);
/// The initial meaning of progress: tasks end between these shares of what it predicts. Most services count from the
/// start of generation and not from the submission, so less is more likely.
const PROMISE: (f64, f64) = (0.85, 1.03);
/// The same for two observations of progress.
const LINE: (f64, f64) = (0.99, 1.01);
/// The spread of one outcome as a prediction for the next, as a share.
const RATIO: f64 = 0.002;
/// The growth of progress between two observations that makes a line through them better than the last one alone.
const LEAST_GROWTH: f64 = 0.1;
/// The sum of marks at which all are halved, so that old ones fade.
const MOST_MARKS: f64 = 32.0;

/// Progress observed by a poll.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sighting {
    /// The age of the task at the poll, in seconds.
    pub age: f64,
    /// The progress, 1 to 99.
    pub percent: u8,
}

impl Sighting {
    /// Returns the share that is done. The service rounds down, so this is the middle of the interval.
    fn share(self) -> f64 {
        (f64::from(self.percent) + 0.5) / 100.0
    }
}

/// A prediction from progress.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Promise {
    /// The age at the poll, in seconds.
    pub age: f64,
    /// The predicted duration of the task, in seconds.
    total: f64,
    /// The error from rounding, as a share.
    rounding: f64,
    /// The method and the quarter of progress: predictions of one kind have similar errors.
    kind: Kind,
    quarter: usize,
}

/// The method of a prediction.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Progress grows evenly from the submission.
    Origin,
    /// Progress grows evenly from its first observation: a queued task counts from its start.
    Line,
}

impl Promise {
    /// The prediction from the last observation, and from the first one if progress has grown enough since.
    pub(super) fn of(first: Sighting, last: Sighting) -> Self {
        let quarter = usize::from(last.percent.min(99) / 25);
        let grown = last.share() - first.share();
        let left = 1.0 - last.share();
        if grown < LEAST_GROWTH || last.age <= first.age {
            let rounding = 0.5 / f64::from(last.percent) + 0.002;
            return Self { age: last.age, total: last.age / last.share(), rounding, kind: Kind::Origin, quarter };
        }
        // The duration from 0 to 100 percent, at this rate.
        let whole = (last.age - first.age) / grown;
        let total = last.age + left * whole;
        // The last observation may be off by half a percent, and so may both for the rest.
        let rounding = 0.005 * (1.0 + left / grown) * whole / total + 0.0005;
        Self { age: last.age, total, rounding, kind: Kind::Line, quarter }
    }
}

/// The knowledge about one class of tasks.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    typical: (f64, f64),
    /// The intervals of age in which tasks ended, the newest last.
    ended: VecDeque<(f64, f64)>,
    /// The outcomes of predictions, by method.
    kept: [Kept; 2],
}

/// The outcomes of one method of prediction.
#[derive(Clone, Debug)]
struct Kept {
    /// Durations as a share of the predicted ones, by quarter of progress.
    ratios: [VecDeque<f64>; 4],
    /// The number of predictions that were better than the class, and worse.
    better: f64,
    worse: f64,
}

impl Kept {
    fn new() -> Self {
        Self { ratios: Default::default(), better: 1.0, worse: 1.0 }
    }

    /// Returns the weight of progress, 0 to 1.
    fn trust(&self) -> f64 {
        self.better / (self.better + self.worse)
    }

    fn mark(&mut self, is_better: bool) {
        *(if is_better { &mut self.better } else { &mut self.worse }) += 1.0;
        if self.better + self.worse > MOST_MARKS {
            self.better /= 2.0;
            self.worse /= 2.0;
        }
    }
}

impl Learned {
    /// Knows the shortest and longest documented duration, in seconds.
    pub(super) fn new(typical: (f64, f64)) -> Self {
        Self { typical, ended: VecDeque::new(), kept: [Kept::new(), Kept::new()] }
    }

    /// Returns the mean duration of tasks of this class, in seconds.
    pub(super) fn mean(&self) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for block in self.class() {
            sum += block.weight * f64::midpoint(block.from, block.to);
            weight += block.weight;
        }
        sum / weight
    }

    /// Returns the longest documented duration, in seconds.
    pub(super) fn longest(&self) -> f64 {
        self.typical.1
    }

    /// Returns the distribution of the end of a task that still runs at `age`, with its last prediction.
    pub(super) fn mixture(&self, age: f64, promise: Option<Promise>) -> Mixture {
        let mut mixture = Mixture::default();
        let Some(promise) = promise else {
            mixture.add(self.class(), age, 1.0);
            return mixture;
        };
        // The weights hold at the moment of the prediction. The age since then changes them.
        let trust = self.kept[promise.kind as usize].trust();
        if !mixture.add(self.promised(promise), promise.age, trust)
            || !mixture.add(self.class(), promise.age, 1.0 - trust)
        {
            mixture = Mixture::default();
            mixture.add(self.class(), age, 1.0);
        }
        mixture
    }

    /// Learns that a task ended between two ages, after these predictions.
    pub(super) fn learn(&mut self, ended: (f64, f64), promises: &[Promise]) {
        let took = f64::midpoint(ended.0, ended.1);
        for promise in promises {
            let likely = |blocks: &mut dyn Iterator<Item = Block>| {
                let blocks: Vec<Block> = blocks.collect();
                let mut mixture = Mixture::default();
                mixture.add(blocks.iter().copied(), promise.age, 1.0);
                mixture.density(took)
            };
            let is_better = likely(&mut self.promised(*promise)) > likely(&mut self.class());
            self.kept[promise.kind as usize].mark(is_better);
        }
        for promise in promises {
            let ratios = &mut self.kept[promise.kind as usize].ratios[promise.quarter];
            keep(ratios, took / promise.total, REMEMBERED_RATIOS);
        }
        keep(&mut self.ended, ended, REMEMBERED);
    }

    /// The distribution of this class: the documented duration, a tail behind it, and the finished tasks.
    fn class(&self) -> impl Iterator<Item = Block> + Clone + '_ {
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let document = DOCUMENT_WEIGHT / (1.0 + self.ended.len() as f64 / 2.0);
        let (min, max) = self.typical;
        let written = [Block::new(min, max, document), Block::new(max, max * SLOWER.1, document * SLOWER.0)];
        let seen = self.ended.iter().map(|&(from, to)| {
            let likeness = LIKENESS * f64::midpoint(from, to);
            Block::new(from - likeness, to + likeness, 1.0)
        });
        written.into_iter().chain(seen)
    }

    /// The distribution from a prediction, by the outcomes of similar ones.
    fn promised(&self, promise: Promise) -> impl Iterator<Item = Block> + Clone + '_ {
        let Promise { total, rounding, .. } = promise;
        let ratios = &self.kept[promise.kind as usize].ratios[promise.quarter];
        #[expect(clippy::cast_precision_loss, reason = "a few")]
        let unknown = 1.0 / (1.0 + ratios.len() as f64 / 2.0);
        let (least, most) = match promise.kind {
            Kind::Origin => PROMISE,
            Kind::Line => LINE,
        };
        let unknown = Block::new(total * (least - rounding), total * (most + rounding), unknown);
        let known = ratios
            .iter()
            .map(move |ratio| Block::new(total * (ratio - rounding - RATIO), total * (ratio + rounding + RATIO), 1.0));
        std::iter::once(unknown).chain(known)
    }
}

fn keep<T>(ring: &mut VecDeque<T>, value: T, most: usize) {
    if ring.len() == most {
        ring.pop_front();
    }
    ring.push_back(value);
}
