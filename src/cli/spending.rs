//! Sums over a ledger, for `spend`.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::{Charge, Usd};
use crate::ledger::Spending;

/// The subjects of lines that are no label.
const SUBJECTS: [&str; 3] = ["day", "batch", "model"];

/// The label that `--by` names, if it names one.
pub(super) fn label(by: Option<&str>) -> Option<&str> {
    by.filter(|by| !SUBJECTS.contains(by))
}

/// The heads of the columns that tell the lines apart: without `--by`, each day, batch, and model together.
pub(super) fn heads(by: Option<&str>) -> Vec<&str> {
    match by {
        None => vec!["day", "name", "batch", "model"],
        Some("batch") => vec!["name", "batch"],
        Some(one) => vec![one],
    }
}

/// The spending.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist spend")]
pub(super) struct SpendView {
    /// The version of this form: 1.
    schema_version: u32,
    /// True for the simulator's ledger, so nothing was paid.
    pub simulated: bool,
    /// The value of `--by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// A line for each day, batch and model, or for each value of what was asked for.
    pub lines: Vec<Line>,
    /// Sums over the lines.
    pub totals: Sums,
    /// The fees of the manifest's approved face reviews, once per face. They are paid outside the interface, so the sums don't contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub face_reviews_usd: Option<Usd>,
}

/// One line of the ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Line {
    /// The day, in this machine's time zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    day: Option<Date>,
    /// The manifest's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// The batch value; empty where the manifest has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The value of the label; empty for what has no such label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Counts and sums.
#[derive(Clone, Copy, Default, Debug, Serialize, JsonSchema)]
pub(super) struct Sums {
    /// Submissions that were charged, or may have been.
    pub attempts: u32,
    /// Certainly charged.
    pub spent_usd: Usd,
    /// In doubt.
    pub at_risk_usd: Usd,
    /// Of tasks of which no one documents when they are charged, and that are not completed.
    pub unknown_usd: Usd,
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.spent_usd += other.spent_usd;
        self.at_risk_usd += other.at_risk_usd;
        self.unknown_usd += other.unknown_usd;
    }

    fn of(spending: &Spending) -> Self {
        let mut sums = Self { attempts: spending.attempts, ..Self::default() };
        *match spending.charge {
            Charge::Unknown if spending.is_doubtful => &mut sums.at_risk_usd,
            Charge::Unknown => &mut sums.unknown_usd,
            _ => &mut sums.spent_usd,
        } += spending.price;
        sums
    }
}

impl Line {
    /// The cells that identify it, in the order of the header.
    pub(super) fn keys(&self) -> Vec<String> {
        let day = self.day.map(|day| day.to_string());
        [&day, &self.name, &self.batch, &self.model, &self.label].into_iter().flatten().cloned().collect()
    }
}

impl SpendView {
    /// Sums by the grouping that was requested, in order. Days are those of a time zone.
    pub(super) fn new(spending: &[Spending], simulated: bool, by: Option<&str>, zone: &TimeZone) -> Self {
        let is_by = |subject| by.is_none_or(|by| by == subject);
        let mut lines: BTreeMap<Vec<String>, Line> = BTreeMap::new();
        for spending in spending.iter().filter(|spending| spending.charge != Charge::None) {
            let line = Line {
                day: is_by("day").then(|| spending.at.to_zoned(zone.clone()).date()),
                name: is_by("batch").then(|| spending.batch.name.clone()),
                batch: is_by("batch").then(|| spending.batch.batch.clone()),
                model: is_by("model").then(|| spending.model.clone()),
                label: label(by).map(|name| spending.labels.get(name).cloned().unwrap_or_default()),
                sums: Sums::default(),
            };
            lines.entry(line.keys()).or_insert(line).sums.add(&Sums::of(spending));
        }
        let lines: Vec<Line> = lines.into_values().collect();
        let mut totals = Sums::default();
        for line in &lines {
            totals.add(&line.sums);
        }
        Self { schema_version: 1, simulated, by: by.map(str::to_owned), lines, totals, face_reviews_usd: None }
    }
}
