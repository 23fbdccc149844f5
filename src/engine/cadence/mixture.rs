//! The distribution of a task's end as a mixture of blocks, and the optimal moment of a poll.

/// The number of steps of a search through all ages.
const MOST_STEPS: f64 = 200.0;

/// An interval of ages with a constant probability density of the task's end. In seconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Block {
    /// The earliest age.
    pub from: f64,
    /// The latest age; later than `from`.
    pub to: f64,
    /// The weight of this block beside the others.
    pub weight: f64,
}

impl Block {
    /// A block from one age to another, at least a millisecond wide.
    pub(super) fn new(from: f64, to: f64, weight: f64) -> Self {
        let from = from.max(0.0);
        Self { from, to: to.max(from + 0.001), weight }
    }

    fn density(&self) -> f64 {
        self.weight / (self.to - self.from)
    }

    fn surviving(&self, age: f64) -> f64 {
        self.weight * ((self.to - age) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// Several blocks: the distribution of a task's end.
#[derive(Clone, Default, Debug)]
pub(super) struct Mixture(Vec<Block>);

impl Mixture {
    /// Adds blocks with the weight `share` among tasks that still run at this age. Returns false, and adds nothing, if
    /// no such task is left in them.
    pub(super) fn add(&mut self, blocks: impl Iterator<Item = Block> + Clone, age: f64, share: f64) -> bool {
        let surviving: f64 = blocks.clone().map(|block| block.surviving(age)).sum();
        if surviving <= f64::EPSILON || share <= 0.0 {
            return false;
        }
        self.0.extend(blocks.map(|block| Block { weight: block.weight * share / surviving, ..block }));
        true
    }

    /// Returns the share of tasks that still run at this age. Above one before the ages of [`add`](Self::add).
    pub(super) fn surviving(&self, age: f64) -> f64 {
        self.0.iter().map(|block| block.surviving(age)).sum()
    }

    /// Returns the share of tasks that end per second at this age.
    pub(super) fn density(&self, age: f64) -> f64 {
        self.0.iter().filter(|block| block.from <= age && age < block.to).map(Block::density).sum()
    }

    /// Returns the best age for the next poll of a task that still runs at `age`: the age at which the integral of the
    /// best density of polls, √(h / 2κ), reaches `polls`. An interval without an end adds nothing. `None` if that age
    /// is never reached.
    pub(super) fn best_age(&self, age: f64, polls: f64, kappa: f64) -> Option<f64> {
        let mut wanted = polls;
        for stretch in self.stretches(age) {
            if stretch.density <= 0.0 {
                continue;
            }
            // ∫ √(f / (2κ·S)) du over a stretch of constant f, along which S falls linearly, is 2(√S₀ − √S₁) / √(2κf).
            let unit = (2.0 * kappa * stretch.density).sqrt() / 2.0;
            let gained = (stretch.before.sqrt() - stretch.after.sqrt()) / unit;
            if gained >= wanted {
                let surviving = (stretch.before.sqrt() - wanted * unit).powi(2);
                return Some(stretch.from + (stretch.before - surviving) / stretch.density);
            }
            wanted -= gained;
        }
        None
    }

    /// Returns the first age at which a task that still runs may end.
    pub(super) fn begins(&self, age: f64) -> f64 {
        let ahead = self.0.iter().filter(|block| block.to > age);
        ahead.map(|block| block.from.max(age)).fold(f64::INFINITY, f64::min)
    }

    /// Returns the first age from which a task that still runs ends within `span` with at least this probability,
    /// accurate to a quarter of `span`. `None` if the task is older than all blocks.
    pub(super) fn likely_from(&self, age: f64, span: f64, probability: f64) -> Option<f64> {
        let end = self.0.iter().map(|block| block.to).fold(0.0, f64::max);
        let step = (span / 4.0).max((end - age) / MOST_STEPS).max(0.001);
        let mut from = age;
        while from < end {
            if self.surviving(from + span) <= self.surviving(from) * (1.0 - probability) {
                return Some(from);
            }
            from += step;
        }
        None
    }

    /// The intervals of constant density after an age, in order.
    fn stretches(&self, age: f64) -> Vec<Stretch> {
        let mut edges: Vec<(f64, f64)> = Vec::with_capacity(2 * self.0.len());
        for block in self.0.iter().filter(|block| block.to > age) {
            edges.push((block.from.max(age), block.density()));
            edges.push((block.to, -block.density()));
        }
        edges.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (mut from, mut density, mut before) = (age, 0.0, self.surviving(age));
        let mut stretches = Vec::with_capacity(edges.len());
        for (edge, change) in edges {
            if edge > from {
                let after = (before - density * (edge - from)).max(0.0);
                stretches.push(Stretch { from, density, before, after });
                (from, before) = (edge, after);
            }
            density = f64::max(density + change, 0.0);
            if density < 1e-12 {
                // A remainder of subtracting equal numbers.
                density = 0.0;
            }
        }
        stretches
    }
}

/// An interval of ages with a constant density.
struct Stretch {
    from: f64,
    density: f64,
    /// The share of running tasks at its start, and at its end.
    before: f64,
    after: f64,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mixture(blocks: &[Block]) -> Mixture {
        let mut mixture = Mixture::default();
        mixture.add(blocks.iter().copied(), 0.0, 1.0);
        mixture
    }

    #[test]
    fn an_end_is_likely_where_it_is_near() {
        let mixture = mixture(&[Block::new(60.0, 180.0, 7.0)]);
        // A twelfth of all ends within ten seconds, so half of that is reached with five of them in reach.
        assert_eq!(mixture.likely_from(0.0, 10.0, 1.0 / 24.0), Some(55.0));
        assert_eq!(mixture.likely_from(100.0, 10.0, 1.0 / 24.0), Some(100.0));
        assert_eq!(mixture.likely_from(200.0, 10.0, 1.0 / 24.0), None);
    }

    proptest! {
        /// The closed form is the integral, as small steps find it.
        #[test]
        fn a_poll_stands_where_the_integral_says(
            edges in prop::collection::vec((0.0..200.0_f64, 0.5..100.0_f64, 0.01..1.0_f64), 1..6),
            age in 0.0..100.0_f64,
            polls in 0.05..3.0_f64,
            kappa in 0.1..2.0_f64,
        ) {
            let blocks: Vec<Block> = edges.iter().map(|&(from, width, weight)| Block::new(from, from + width, weight)).collect();
            let mixture = mixture(&blocks);
            let Some(best) = mixture.best_age(age, polls, kappa) else { return Ok(()) };
            prop_assert!(best >= age);
            let steps = 20_000_u32;
            let width = (best - age) / f64::from(steps);
            let integral: f64 = (0..steps)
                .map(|step| age + (f64::from(step) + 0.5) * width)
                .map(|at| (mixture.density(at) / (2.0 * kappa * mixture.surviving(at).max(1e-12))).sqrt() * width)
                .sum();
            prop_assert!((integral - polls).abs() < 0.02 * polls + 0.01, "{integral} instead of {polls}");
        }
    }
}
