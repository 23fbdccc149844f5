//! Sums over a ledger, for `spend`.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::domain::{Charge, Usd};
use crate::ledger::Spending;

/// The subject of the lines.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum By {
    /// Each day, batch and model together.
    All,
    Day,
    Batch,
    Model,
    /// The values of the label with this name.
    Label(String),
}

impl By {
    /// The subject that `--by` names.
    pub(super) fn named(word: Option<&str>) -> Self {
        match word {
            None => Self::All,
            Some("day") => Self::Day,
            Some("batch") => Self::Batch,
            Some("model") => Self::Model,
            Some(label) => Self::Label(label.to_owned()),
        }
    }

    fn word(&self) -> Option<&str> {
        match self {
            Self::All => None,
            Self::Day => Some("day"),
            Self::Batch => Some("batch"),
            Self::Model => Some("model"),
            Self::Label(name) => Some(name),
        }
    }

    /// The heads of the columns that tell the lines apart.
    pub(super) fn heads(&self) -> Vec<&str> {
        match self {
            Self::All => vec!["day", "name", "batch", "model"],
            Self::Day => vec!["day"],
            Self::Batch => vec!["name", "batch"],
            Self::Model => vec!["model"],
            Self::Label(name) => vec![name],
        }
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
    pub(super) fn new(spending: &[Spending], simulated: bool, by: &By, zone: &TimeZone) -> Self {
        let is_all = *by == By::All;
        let mut lines: BTreeMap<Vec<String>, Line> = BTreeMap::new();
        for spending in spending.iter().filter(|spending| spending.charge != Charge::None) {
            let line = Line {
                day: (is_all || *by == By::Day).then(|| spending.at.to_zoned(zone.clone()).date()),
                name: (is_all || *by == By::Batch).then(|| spending.batch.name.clone()),
                batch: (is_all || *by == By::Batch).then(|| spending.batch.batch.clone()),
                model: (is_all || *by == By::Model).then(|| spending.model.clone()),
                label: match by {
                    By::Label(name) => Some(spending.labels.get(name).cloned().unwrap_or_default()),
                    _ => None,
                },
                sums: Sums::default(),
            };
            lines.entry(line.keys()).or_insert(line).sums.add(&Sums::of(spending));
        }
        let lines: Vec<Line> = lines.into_values().collect();
        let mut totals = Sums::default();
        for line in &lines {
            totals.add(&line.sums);
        }
        Self { schema_version: 1, simulated, by: by.word().map(str::to_owned), lines, totals }
    }
}
