//! What this run has learned of one class of tasks: how long they take, and what their progress is worth.

use std::collections::VecDeque;

use super::mixture::{Block, Mixture};

/// How many finished tasks are remembered; older ones are forgotten, so that a service that changes is followed.
const REMEMBERED: usize = 24;
/// How many outcomes of predictions are remembered for each quarter of progress.
const REMEMBERED_RATIOS: usize = 12;
/// How far a finished task speaks for others, as a share of the time that it took.
const LIKENESS: f64 = 0.04;
/// How much the document's word counts, in finished tasks, while there are none; it fades as there are more.
const DOCUMENT_WEIGHT: f64 = 2.0;
/// The share of tasks that are thought to take longer than the document says, and up to how many times as long.
const SLOWER: (f64, f64) = (0.1, 3.0);
/// What progress is thought to be worth before anything is known: tasks end between these shares of what it promises.
/// Most services count from the moment they begin, not from the submission, so that less than promised is likelier.
const PROMISE: (f64, f64) = (0.85, 1.03);
/// The same for progress that was seen to grow.
const LINE: (f64, f64) = (0.99, 1.01);
/// How far what came of one promise speaks for the next, as a share of it.
const RATIO: f64 = 0.002;
/// How far progress has to grow between two sightings until a line through them says more than the last one alone.
const LEAST_GROWTH: f64 = 0.1;
/// Marks for good and bad predictions are halved when there are more than this, so that old ones fade.
const MOST_MARKS: f64 = 32.0;

/// Progress that was seen at some poll.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sighting {
    /// The age at the poll, in seconds.
    pub age: f64,
    /// The progress, 1 to 99.
    pub percent: u8,
}

impl Sighting {
    /// The share that is done: the service rounds down, so the middle of what it may mean counts.
    fn share(self) -> f64 {
        (f64::from(self.percent) + 0.5) / 100.0
    }
}

/// What progress promised at some poll.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Promise {
    /// The age at the poll, in seconds.
    pub age: f64,
    /// How long the task takes altogether by it, in seconds.
    total: f64,
    /// How far off that may be by rounding alone, as a share.
    rounding: f64,
    /// What it was reckoned from, and the quarter in which progress stood: promises of one kind err alike.
    kind: Kind,
    quarter: usize,
}

/// What a promise was reckoned from.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    /// Progress that grows evenly from the submission on.
    Origin,
    /// Progress that grows evenly from where it was first seen: a task that waits in a queue counts from when it is begun.
    Line,
}

impl Promise {
    /// The promise of what was seen last, and of what was seen first if progress grew far enough since.
    pub(super) fn of(first: Sighting, last: Sighting) -> Self {
        let quarter = usize::from(last.percent.min(99) / 25);
        let grown = last.share() - first.share();
        let left = 1.0 - last.share();
        if grown < LEAST_GROWTH || last.age <= first.age {
            let rounding = 0.5 / f64::from(last.percent) + 0.002;
            return Self { age: last.age, total: last.age / last.share(), rounding, kind: Kind::Origin, quarter };
        }
        // How long it takes for all of it at this pace, without what came before it began to count.
        let whole = (last.age - first.age) / grown;
        let total = last.age + left * whole;
        // The last one may be off by half a percent, and so may both for what is left.
        let rounding = 0.005 * (1.0 + left / grown) * whole / total + 0.0005;
        Self { age: last.age, total, rounding, kind: Kind::Line, quarter }
    }
}

/// What is known of one class of tasks.
#[derive(Clone, Debug)]
pub(super) struct Learned {
    typical: (f64, f64),
    /// Between which ages tasks ended, the newest last.
    ended: VecDeque<(f64, f64)>,
    /// What came of promises, by what they were reckoned from.
    kept: [Kept; 2],
}

/// What came of promises of one kind.
#[derive(Clone, Debug)]
struct Kept {
    /// How long tasks took as a share of what progress had promised, by the quarter that it stood in.
    ratios: [VecDeque<f64>; 4],
    /// How often progress foretold the end better than the class did, and how often worse.
    better: f64,
    worse: f64,
}

impl Kept {
    fn new() -> Self {
        Self { ratios: Default::default(), better: 1.0, worse: 1.0 }
    }

    /// How much progress counts, 0 to 1.
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
    /// Nothing but what the document says: shortest and longest typical time in seconds.
    pub(super) fn new(typical: (f64, f64)) -> Self {
        Self { typical, ended: VecDeque::new(), kept: [Kept::new(), Kept::new()] }
    }

    /// The mean time that a task of this class takes, in seconds.
    pub(super) fn mean(&self) -> f64 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for block in self.class() {
            sum += block.weight * f64::midpoint(block.from, block.to);
            weight += block.weight;
        }
        sum / weight
    }

    /// The longest typical time that the document says, in seconds.
    pub(super) fn longest(&self) -> f64 {
        self.typical.1
    }

    /// The earliest age at which a task is thought to be ready.
    pub(super) fn earliest(&self) -> f64 {
        self.class().map(|block| block.from).fold(f64::INFINITY, f64::min)
    }

    /// What is thought of a task that still runs at `age`, and of which `promise` was seen last.
    pub(super) fn mixture(&self, age: f64, promise: Option<Promise>) -> Mixture {
        let mut mixture = Mixture::default();
        let Some(promise) = promise else {
            mixture.add(self.class(), age, 1.0);
            return mixture;
        };
        // The shares hold at the moment of the promise; what was survived since then moves them.
        let trust = self.kept[promise.kind as usize].trust();
        if !mixture.add(self.promised(promise), promise.age, trust)
            || !mixture.add(self.class(), promise.age, 1.0 - trust)
        {
            mixture = Mixture::default();
            mixture.add(self.class(), age, 1.0);
        }
        mixture
    }

    /// Takes in that a task ended between two ages, after these promises.
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

    /// When tasks of this class end: as the document says, somewhat later, or as those that ended.
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

    /// When a task ends that has promised this, by what came of such promises.
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
