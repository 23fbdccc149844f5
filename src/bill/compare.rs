//! A bill against the ledger: what agrees, and what does not.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use super::read::{Bill, Line};
use crate::domain::{Attempt, AttemptState, BatchKey, Charge, TaskNames, Usd};

/// How far the time of a charge may be from that of a submission that it may belong to: bills have days, in time zones of their own.
const NEAR: SignedDuration = SignedDuration::from_hours(36);

/// The days that a bill covers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// When it begins.
    pub from: Timestamp,
    /// When it is over.
    pub to: Timestamp,
    /// Whether a person said so: then what the bill does not have was not charged.
    pub is_said: bool,
}

/// An attempt, and what the bill says of it.
#[derive(Clone, Debug)]
pub(crate) struct Matched<'l> {
    /// Its batch.
    pub batch: &'l BatchKey,
    /// The attempt.
    pub attempt: &'l Attempt,
    /// What was charged for it, less what was given back.
    pub billed: Usd,
    /// How many charges there are for it.
    pub charges: usize,
}

/// What came of holding a bill against the ledger.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison<'l> {
    /// Both say the same.
    pub agreed: Vec<Matched<'l>>,
    /// Nobody documents whether it was charged, and the bill says it: charged.
    pub charged: Vec<Matched<'l>>,
    /// The same: not charged.
    pub free: Vec<Matched<'l>>,
    /// The bill says another amount.
    pub differing: Vec<Matched<'l>>,
    /// The ledger has them as charged in the period, and the bill does not have them.
    pub missing: Vec<Matched<'l>>,
    /// Nobody knows whether they were charged, and the bill does not say it.
    pub unknown: Vec<Matched<'l>>,
    /// In doubt, with lines of strange tasks that each may be, the nearest in time first.
    pub doubts: Vec<(Matched<'l>, Vec<&'l Line>)>,
    /// Lines about tasks that the ledger does not know.
    pub strange: Vec<&'l Line>,
}

/// What the bill says of one task.
#[derive(Clone, Copy, Default)]
struct Entry {
    charged: Usd,
    credited: Usd,
    charges: usize,
}

/// Holds a bill against all that the ledger knows of purchases.
pub(crate) fn compare<'l>(bill: &'l Bill, bought: &'l [(BatchKey, Attempt)], period: Period) -> Comparison<'l> {
    let mut owners: HashMap<&str, usize> = HashMap::new();
    for (number, (_, attempt)) in bought.iter().enumerate() {
        for name in attempt.task.iter().flat_map(TaskNames::each) {
            owners.insert(name.as_str(), number);
        }
    }
    let mut entries: HashMap<usize, Entry> = HashMap::new();
    let mut found = Comparison::default();
    for line in &bill.lines {
        let Some(owner) = owners.get(line.task.as_str()) else {
            found.strange.push(line);
            continue;
        };
        let entry = entries.entry(*owner).or_default();
        if line.is_credit {
            entry.credited += line.usd;
        } else {
            entry.charged += line.usd;
            entry.charges += 1;
        }
    }
    for (number, (batch, attempt)) in bought.iter().enumerate() {
        let entry = entries.get(&number).copied();
        let Entry { charged, credited, charges } = entry.unwrap_or_default();
        let is_covered = (period.from..period.to).contains(&attempt.intended_at);
        let matched = Matched { batch, attempt, billed: charged.saturating_sub(credited), charges };
        if attempt.state.is_doubtful() {
            if is_covered {
                found.doubts.push((matched, Vec::new()));
            }
            continue;
        }
        match entry {
            Some(_) if credited > charged => found.differing.push(matched),
            Some(_) => found.place(matched),
            None if !is_covered || attempt.state.is_free() => {}
            None => found.place_missing(matched, period.is_said),
        }
    }
    let Comparison { doubts, strange, .. } = &mut found;
    for (matched, candidates) in doubts {
        *candidates = fitting(matched.attempt, strange);
    }
    found
}

impl<'l> Comparison<'l> {
    /// What the bill has.
    fn place(&mut self, matched: Matched<'l>) {
        let (price, billed) = (matched.attempt.price, matched.billed);
        let is_settled = matched.attempt.state == AttemptState::Failed;
        let list = match matched.attempt.charge() {
            Charge::Charged if billed == price => &mut self.agreed,
            Charge::None if billed.is_zero() => &mut self.agreed,
            // While it is at the service, a charge is as good as none.
            Charge::Unknown if !is_settled && (billed == price || billed.is_zero()) => &mut self.agreed,
            Charge::Unknown if is_settled && billed == price => &mut self.charged,
            Charge::Unknown if is_settled && billed.is_zero() => &mut self.free,
            _ => &mut self.differing,
        };
        list.push(matched);
    }

    /// What the bill does not have although it covers its day.
    fn place_missing(&mut self, matched: Matched<'l>, is_said: bool) {
        let is_settled = matched.attempt.state == AttemptState::Failed;
        match matched.attempt.charge() {
            Charge::Charged => self.missing.push(matched),
            Charge::Unknown if is_settled && is_said => self.free.push(matched),
            Charge::Unknown if is_settled => self.unknown.push(matched),
            Charge::Unknown | Charge::None => {}
        }
    }

    /// Whether both say the same, once what the bill settles is written down.
    pub(crate) fn agrees(&self) -> bool {
        self.differing.is_empty()
            && self.missing.is_empty()
            && self.unknown.is_empty()
            && self.doubts.is_empty()
            && self.strange.is_empty()
    }

    /// What the bill settles, and how.
    pub(crate) fn settled(&self) -> impl Iterator<Item = (&Matched<'l>, bool)> {
        let charged = self.charged.iter().map(|matched| (matched, true));
        charged.chain(self.free.iter().map(|matched| (matched, false)))
    }
}

/// The lines of strange tasks that a doubt may be: of its price, and near it in time where the bill has times.
fn fitting<'l>(doubt: &Attempt, strange: &[&'l Line]) -> Vec<&'l Line> {
    let distance = |line: &Line| line.at.map(|at| at.duration_since(doubt.intended_at).abs());
    let fits = |line: &&&Line| {
        line.usd == doubt.price && !line.is_credit && distance(line).is_none_or(|distance| distance <= NEAR)
    };
    let mut fitting: Vec<&Line> = strange.iter().filter(fits).copied().collect();
    fitting.sort_by_key(|line| (distance(line).unwrap_or(NEAR), line.number));
    fitting
}
