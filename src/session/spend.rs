//! Sums of spending by day, batch, model, or label, from the ledger alone.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use super::refusal::Refusal;
use crate::domain::{Attempt, AttemptState, BatchKey, Charge, JobChoice, Labels, Takes, Usd};
use crate::ledger::{Ledger, Spending};

/// The subjects of lines that are no label.
const SUBJECTS: [&str; 3] = ["day", "batch", "model"];

/// The label under `--by`, if it is one.
pub(crate) fn label(by: Option<&str>) -> Option<&str> {
    by.filter(|by| !SUBJECTS.contains(by))
}

/// The spending.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist spend")]
pub(crate) struct SpendView {
    /// The version of this form: 1.
    schema_version: u32,
    /// True for the simulator's ledger, so nothing was paid.
    pub simulated: bool,
    /// The value of `--by`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// A line for each day, batch, and model, or for each value of `--by`.
    pub lines: Vec<Line>,
    /// Sums over the lines.
    pub totals: Sums,
    /// The fees of the manifest's approved face reviews, once per face. They are paid outside the interface, so the sums don't contain them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub face_reviews_usd: Option<Usd>,
    /// The names of all labels.
    #[serde(skip)]
    pub labels: BTreeSet<String>,
}

/// One line of the ledger.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
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
    /// The value of the label; empty for jobs without this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<String>,
    /// The sums.
    #[serde(flatten)]
    pub sums: Sums,
}

/// Counts and sums.
#[derive(Clone, Copy, Default, Debug, Serialize, JsonSchema)]
pub(crate) struct Sums {
    /// Submissions that were charged, or may have been.
    pub attempts: u32,
    /// Certainly charged.
    pub spent_usd: Usd,
    /// In doubt.
    pub at_risk_usd: Usd,
    /// Of tasks that are not completed, if the time of their charge is not documented.
    pub unknown_usd: Usd,
    #[serde(flatten)]
    #[schemars(with = "KeptView")]
    pub kept: Kept,
}

/// The jobs with a choice.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[serde(into = "KeptView")]
pub(crate) struct Kept {
    /// The number of jobs with a choice.
    pub decided: u32,
    /// The charges of these jobs, of all their takes, and those that are unknown.
    usd: Usd,
    pub unknown: Usd,
    pub videos: u32,
    /// The duration of the kept videos, and the number of those whose duration is unknown.
    ms: u64,
    unmeasured: u32,
}

/// The jobs whose videos are kept.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KeptView {
    /// The number of kept videos.
    pub kept: u32,
    /// Their seconds; null if the duration of one is unknown.
    pub kept_s: Option<f64>,
    /// The charges of the jobs with a choice, of all their takes, for each second of a kept video. Null below ten such jobs, and if a charge is unknown.
    pub usd_per_kept_s: Option<Usd>,
}

/// The fewest jobs with a choice that show a price of a second.
const MIN_DECIDED: u32 = 10;

impl From<Kept> for KeptView {
    fn from(Kept { decided, usd, unknown, videos, ms, unmeasured }: Kept) -> Self {
        let is_known = unmeasured == 0;
        // Rounded to a hundredth of a cent.
        let is_certain = is_known && unknown.is_zero() && decided >= MIN_DECIDED;
        let price = i64::try_from(ms).ok().filter(|ms| *ms > 0 && is_certain);
        let price = price.map(|ms| Usd::from_micros((usd.micros() * 10 + ms / 2) / ms * 100));
        Self { kept: videos, kept_s: is_known.then(|| Duration::from_millis(ms).as_secs_f64()), usd_per_kept_s: price }
    }
}

impl Kept {
    fn add(&mut self, other: &Self) {
        self.decided += other.decided;
        self.usd += other.usd;
        self.unknown += other.unknown;
        self.videos += other.videos;
        self.ms += other.ms;
        self.unmeasured += other.unmeasured;
    }
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.spent_usd += other.spent_usd;
        self.at_risk_usd += other.at_risk_usd;
        self.unknown_usd += other.unknown_usd;
        self.kept.add(&other.kept);
    }

    fn for_spending(spending: &Spending) -> Self {
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
    pub(crate) fn keys(&self) -> Vec<String> {
        let day = self.day.map(|day| day.to_string());
        [&day, &self.name, &self.batch, &self.model, &self.label].into_iter().flatten().cloned().collect()
    }
}

impl SpendView {
    /// Sums since a time by the grouping that was requested, in order. Days are those of a time zone.
    pub(crate) async fn from_ledger(
        ledger: &Ledger,
        since: Timestamp,
        by: Option<&str>,
        zone: &TimeZone,
    ) -> Result<Self, Refusal> {
        let (spending, reviewed) = (ledger.spending(since).await?, ledger.reviewed(since).await?);
        let is_by = |subject| by.is_none_or(|by| by == subject);
        let mut lines: BTreeMap<Vec<String>, Line> = BTreeMap::new();
        let mut add = |at: Timestamp, batch: &BatchKey, model: &str, labels: &Labels, sums: &Sums| {
            let line = Line {
                day: is_by("day").then(|| at.to_zoned(zone.clone()).date()),
                name: is_by("batch").then(|| batch.name.clone()),
                batch: is_by("batch").then(|| batch.batch.clone()),
                model: is_by("model").then(|| model.to_owned()),
                label: label(by).map(|name| labels.get(name).cloned().unwrap_or_default()),
                sums: Sums::default(),
            };
            lines.entry(line.keys()).or_insert(line).sums.add(sums);
        };
        for one in spending.iter().filter(|spending| spending.charge != Charge::None) {
            add(one.at, &one.batch, &one.model, &one.labels, &Sums::for_spending(one));
        }
        for ((batch, Attempt { purchase, intended_at, .. }), kept) in decided(&reviewed, since) {
            let sums = Sums { kept, ..Sums::default() };
            add(*intended_at, batch, &purchase.model, &purchase.labels, &sums);
        }
        let lines: Vec<Line> = lines.into_values().collect();
        let mut totals = Sums::default();
        for line in &lines {
            totals.add(&line.sums);
        }
        let labels = spending.into_iter().flat_map(|line| line.labels.into_keys()).collect();
        let (simulated, by) = (ledger.is_simulated(), by.map(str::to_owned));
        Ok(Self { schema_version: 1, simulated, by, lines, totals, face_reviews_usd: None, labels })
    }
}

/// The parts of jobs with a choice, by their purchases since a time, of the attempts of reviewed jobs.
fn decided(reviewed: &[(BatchKey, Attempt)], since: Timestamp) -> Vec<(&(BatchKey, Attempt), Kept)> {
    let mut parts = Vec::new();
    for job in reviewed.chunk_by(|(batch, one), (other, another)| batch == other && one.job() == another.job()) {
        let attempts = job.iter().map(|(_, attempt)| attempt);
        let newest = attempts.clone().rfind(|attempt| attempt.state == AttemptState::Completed);
        let takes = newest.and_then(|newest| Takes::new(newest.purchase.fingerprint(), attempts));
        let Some((video, choice)) = takes.and_then(|takes| Some((takes.video.id, takes.choice?))) else { continue };
        let charged = job.iter().filter(|(_, it)| it.intended_at >= since && it.charge() != Charge::None);
        for one in charged.filter(|_| choice != JobChoice::Conflict) {
            let (_, attempt) = one;
            let sum = |charge| if attempt.charge() == charge { attempt.cost() } else { Usd::ZERO };
            let is_kept = attempt.id == video && choice == JobChoice::Keep;
            let ms = attempt.file.as_ref().and_then(|file| file.footage.as_ref()?.duration_ms);
            parts.push((
                one,
                Kept {
                    decided: (attempt.id == video).into(),
                    usd: sum(Charge::Charged),
                    unknown: sum(Charge::Unknown),
                    videos: is_kept.into(),
                    ms: ms.filter(|_| is_kept).unwrap_or_default(),
                    unmeasured: (is_kept && ms.is_none()).into(),
                },
            ));
        }
    }
    parts
}
