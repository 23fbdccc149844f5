//! Compares a bill with the ledger.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::read::{Bill, Line};
use crate::domain::{Account, Attempt, AttemptState, BatchKey, Charge, TaskNames, Usd};

/// The maximum distance of a charge from the submission or the end of its task: bills have days in their own time zones, and the time of a charge is
/// undocumented.
const NEAR: SignedDuration = SignedDuration::from_hours(36);

/// The days of a bill.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// The beginning.
    pub from: Timestamp,
    /// The end.
    pub to: Timestamp,
    /// True if the user set them. Then a bill with only matched lines proves that a missing charge was not made.
    pub is_said: bool,
}

/// An attempt with its charges on the bill.
#[derive(Clone, Debug)]
pub struct Matched<'l> {
    /// Its batch.
    pub batch: &'l BatchKey,
    /// The attempt.
    pub attempt: &'l Attempt,
    /// The sum of its charges, without refunds.
    pub billed: Usd,
    /// The number of its charges.
    pub charges: usize,
}

/// The result of comparing a bill with the ledger.
#[derive(Clone, Debug, Default)]
pub struct Comparison<'l> {
    /// Both have the same charge.
    pub agreed: Vec<Matched<'l>>,
    /// Undocumented charges that the bill contains.
    pub charged: Vec<Matched<'l>>,
    /// Undocumented charges that the bill lacks: not charged.
    pub free: Vec<Matched<'l>>,
    /// The bill has another amount.
    pub differing: Vec<Matched<'l>>,
    /// Charged in the period by the ledger, and missing on the bill.
    pub missing: Vec<Matched<'l>>,
    /// Unknown charges that the bill does not settle.
    pub unknown: Vec<Matched<'l>>,
    /// In doubt, each with possible lines of unknown tasks, the nearest in time first.
    pub doubts: Vec<(Matched<'l>, Vec<&'l Line>)>,
    /// Lines about tasks that the ledger lacks, or that two of its services have.
    pub strange: Vec<&'l Line>,
    /// Lines without a task: fees, taxes, or other products.
    pub others: Vec<&'l Line>,
    /// Submissions of accounts that the bill does not cover.
    pub of_others: Vec<Matched<'l>>,
}

/// The bill's lines about one task.
#[derive(Clone, Copy, Default)]
struct Entry {
    charged: Usd,
    credited: Usd,
    charges: usize,
}

/// The attempt of each task ID; `None` if two services have the same ID.
fn owners(bought: &[(BatchKey, Attempt)]) -> HashMap<&str, Option<usize>> {
    let mut owners: HashMap<&str, Option<usize>> = HashMap::new();
    for (number, (_, attempt)) in bought.iter().enumerate() {
        for name in attempt.task.iter().flat_map(TaskNames::each) {
            owners.entry(name.as_str()).and_modify(|owner| *owner = None).or_insert(Some(number));
        }
    }
    owners
}

/// Returns whether the bill covers an account: the only one, or the account of one of its lines.
fn accounts<'l>(
    bought: &'l [(BatchKey, Attempt)],
    entries: &HashMap<usize, Entry>,
) -> impl Fn(&Account) -> bool + use<'l> {
    let all: HashSet<&Account> = bought.iter().map(|(_, attempt)| &attempt.account).collect();
    let named: HashSet<&'l Account> = bought
        .iter()
        .enumerate()
        .filter(|(number, _)| entries.contains_key(number))
        .map(|(_, (_, attempt))| &attempt.account)
        .collect();
    let is_only = all.len() < 2;
    move |account| is_only || named.contains(account)
}

/// Returns whether the user declared it never created. A matching line contradicts that.
fn is_declared_away(attempt: &Attempt) -> bool {
    attempt.particulars.declared.is_some_and(|declared| declared.what.denies_task())
}

impl Period {
    /// Returns whether an attempt was submitted in these days.
    fn covers(&self, attempt: &Attempt) -> bool {
        (self.from..self.to).contains(&attempt.intended_at)
    }

    /// Returns whether a charge at any time of an attempt would be on a bill of these days.
    fn is_well_inside(&self, attempt: &Attempt) -> bool {
        let ended = attempt.ended_at.unwrap_or(attempt.intended_at);
        let is_behind = |edge: Timestamp, at: Timestamp| at.duration_since(edge) >= NEAR;
        self.is_said && is_behind(self.from, attempt.intended_at) && is_behind(ended, self.to)
    }
}

/// Returns whether a comparison needs a submission: of the period, on the bill, or declared never created.
pub fn depends_on(bill: &Bill, period: Period) -> impl Fn(&Attempt) -> bool + Send + Sync + use<> {
    let named = bill.lines.iter().map(|line| &line.task).chain(bill.unread.iter().map(|unread| &unread.task));
    let named: HashSet<String> = named.cloned().collect();
    move |attempt| {
        period.covers(attempt)
            || is_declared_away(attempt)
            || attempt.task.iter().flat_map(TaskNames::each).any(|name| named.contains(name.as_str()))
    }
}

/// Compares a bill with the purchases that it [needs](depends_on).
pub fn compare<'l>(bill: &'l Bill, bought: &'l [(BatchKey, Attempt)], period: Period) -> Comparison<'l> {
    let owners = owners(bought);
    let mut entries: HashMap<usize, Entry> = HashMap::new();
    let mut found = Comparison::default();
    for line in &bill.lines {
        let Some(Some(owner)) = owners.get(line.task.as_str()).copied() else {
            found.strange.push(line);
            continue;
        };
        let entry = entries.entry(owner).or_default();
        if line.is_credit {
            entry.credited += line.usd;
        } else {
            entry.charged += line.usd;
            entry.charges += 1;
        }
    }
    found.others = bill.others.iter().collect();
    // An unreadable line may be about any charge of its task.
    let untold: HashSet<usize> = bill.unread.iter().filter_map(|unread| *owners.get(unread.task.as_str())?).collect();
    let is_meant = accounts(bought, &entries);
    // Without an unmatched line, a missing charge was not made.
    let is_explained =
        !entries.is_empty() && found.strange.is_empty() && found.others.is_empty() && bill.unread.is_empty();
    for (number, (batch, attempt)) in bought.iter().enumerate() {
        let entry = entries.get(&number).copied();
        let Entry { charged, credited, charges } = entry.unwrap_or_default();
        let is_covered = period.covers(attempt);
        let matched = Matched { batch, attempt, billed: charged.saturating_sub(credited), charges };
        if !is_meant(&attempt.account) {
            if is_covered && attempt.charge() != Charge::None {
                found.of_others.push(matched);
            }
            continue;
        }
        if attempt.state.is_doubtful() {
            if is_covered {
                found.doubts.push((matched, Vec::new()));
            }
            continue;
        }
        match entry {
            Some(_) if credited > charged => found.differing.push(matched),
            Some(_) => found.place(matched),
            None if is_declared_away(attempt) => found.doubts.push((matched, Vec::new())),
            None if !is_covered || attempt.state.made_no_task() || untold.contains(&number) => {}
            None => found.place_missing(matched, is_explained && period.is_well_inside(attempt)),
        }
    }
    let Comparison { doubts, strange, .. } = &mut found;
    for (matched, candidates) in &mut *doubts {
        *candidates = fitting(matched.attempt, strange);
    }
    doubts.retain(|(matched, candidates)| matched.attempt.state.is_doubtful() || !candidates.is_empty());
    found
}

impl<'l> Comparison<'l> {
    /// Adds an attempt that is on the bill.
    fn place(&mut self, matched: Matched<'l>) {
        let (price, billed) = (matched.attempt.purchase.price, matched.billed);
        let is_settled = matched.attempt.state == AttemptState::Failed;
        let list = match matched.attempt.charge() {
            Charge::Charged if billed == price => &mut self.agreed,
            Charge::None if billed.is_zero() => &mut self.agreed,
            // The charge of an active task may still change.
            Charge::Unknown if !is_settled && (billed == price || billed.is_zero()) => &mut self.agreed,
            // Also if an earlier bill lacked it: a present charge is stronger evidence than a missing one.
            Charge::Unknown | Charge::None if is_settled && billed == price => &mut self.charged,
            Charge::Unknown if is_settled && billed.is_zero() => &mut self.free,
            _ => &mut self.differing,
        };
        list.push(matched);
    }

    /// Adds an attempt in the period that the bill lacks.
    fn place_missing(&mut self, matched: Matched<'l>, says_it: bool) {
        let is_settled = matched.attempt.state == AttemptState::Failed;
        match matched.attempt.charge() {
            Charge::Charged => self.missing.push(matched),
            Charge::Unknown if is_settled && says_it => self.free.push(matched),
            Charge::Unknown if is_settled => self.unknown.push(matched),
            Charge::Unknown | Charge::None => {}
        }
    }

    /// Returns whether both agree, once the settled charges are recorded.
    pub fn agrees(&self) -> bool {
        self.differing.is_empty()
            && self.missing.is_empty()
            && self.unknown.is_empty()
            && self.doubts.is_empty()
            && self.strange.is_empty()
            && self.others.is_empty()
    }

    /// The charges that the bill settles.
    pub fn settled(&self) -> impl Iterator<Item = (&Matched<'l>, bool)> {
        let charged = self.charged.iter().map(|matched| (matched, true));
        charged.chain(self.free.iter().map(|matched| (matched, false)))
    }
}

/// The lines of unknown tasks that may be an attempt in doubt: those with its price first, then by distance in time. A line with another amount must be
/// near in time.
fn fitting<'l>(doubt: &Attempt, strange: &[&'l Line]) -> Vec<&'l Line> {
    let distance = |line: &Line| line.at.map(|at| at.duration_since(doubt.intended_at).abs());
    let is_near = |line: &Line| distance(line).map(|distance| distance <= NEAR);
    let fits = |line: &&&Line| !line.is_credit && is_near(line).unwrap_or(line.usd == doubt.purchase.price);
    let mut fitting: Vec<&Line> = strange.iter().filter(fits).copied().collect();
    if fitting.iter().any(|line| line.usd == doubt.purchase.price) {
        fitting.retain(|line| line.usd == doubt.purchase.price);
    }
    fitting.sort_by_key(|line| (line.usd != doubt.purchase.price, distance(line).unwrap_or(NEAR), line.number));
    fitting
}
