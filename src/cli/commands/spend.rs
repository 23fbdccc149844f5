//! `shotlist spend`: money by day, batch, model, or label, from the ledger only.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::cli::args::{SpendArgs, SpendFormat};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::paths;
use crate::cli::program::block_on;
use crate::domain::{Attempt, AttemptState, BatchKey, Charge, JobChoice, Labels, NoticeCode, Takes, Usd};
use crate::files::own_zone;
use crate::ledger::Spending;
use crate::manifest::{Options, load};
use crate::ui::{Column, Page, Terminal};

/// Shows the spending. Days follow the machine's time zone.
pub(super) fn spend(args: &SpendArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let zone = own_zone()?;
    let since = match args.since {
        None => Timestamp::MIN,
        Some(day) => {
            let start = day.to_zoned(zone.clone());
            start.map_err(|error| failure!(OptionInvalid, "`--since`: {error}"))?.timestamp()
        }
    };
    let ledger = paths::existing_ledger(args.ledger.as_ref(), args.manifest.as_deref(), args.sandbox)?;
    let (spending, reviewed) = block_on(async { Ok((ledger.spending(since).await?, ledger.reviewed(since).await?)) })?;
    let by = args.by.as_deref();
    if let Some(name) = label(by) {
        refuse_unknown(name, &spending)?;
    }
    let mut books = SpendView::new(&spending, &decided(&reviewed, since), ledger.is_simulated(), by, &zone);
    if let Some(path) = args.manifest.as_deref().filter(|path| path.is_file() && !ledger.is_simulated()) {
        let reviews = load(&Options::new(path), Catalog::embedded()).face_reviews();
        if reviews.is_none() {
            let text = format!("can't read the faces of `{}`, so their review fees are not shown", path.display());
            terminal.warning(NoticeCode::FacesNotRead, &text);
        }
        books.face_reviews_usd =
            reviews.map(|reviews| args.since.map_or_else(|| reviews.usd(), |day| reviews.usd_since(day)));
    }
    let page = match args.format {
        SpendFormat::Json => Page::json(&books)?,
        SpendFormat::Csv => csv(&books, by).map_err(|error| Failure::cannot_write(&error))?,
        SpendFormat::Text => text(&books, by, terminal),
    };
    terminal.result(&page);
    Ok(Exit::Done)
}

/// An unknown label is an error, because one line for all purchases would pass for a result.
fn refuse_unknown(label: &str, spending: &[Spending]) -> Result<(), Failure> {
    let known: BTreeSet<&str> = spending.iter().flat_map(|line| line.labels.keys().map(String::as_str)).collect();
    if known.contains(label) || spending.is_empty() {
        return Ok(());
    }
    let failure = failure!(LabelUnknown, "`--by {label}`: no submitted job has this label");
    let known: Vec<&str> = known.into_iter().collect();
    Err(failure.with_help(if known.is_empty() {
        "pass `day`, `batch`, or `model`; a job has a label if you set `labels: { client: acme }` before it is submitted"
            .to_owned()
    } else {
        format!("pass `day`, `batch`, `model`, or one of the labels: {}", known.join(", "))
    }))
}

fn csv(books: &SpendView, by: Option<&str>) -> std::io::Result<Page> {
    let owned = |heads: Vec<&str>| heads.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let sums = ["attempts", "spent_usd", "at_risk_usd", "unknown_usd", "kept", "kept_s", "usd_per_kept_s"];
    let head = [heads(by), sums.to_vec()].concat();
    let rows = books
        .lines
        .iter()
        .map(|line| line.keys().into_iter().chain(cells(&line.sums, |usd| usd.to_string())).collect());
    Page::csv([owned(head)].into_iter().chain(rows))
}

fn text(books: &SpendView, by: Option<&str>, terminal: &Terminal) -> Page {
    // A name and its batch are one thing for the user.
    let joined = |keys: Vec<String>| match by {
        None | Some("batch") => {
            let at = usize::from(by.is_none());
            let batch =
                if keys[at + 1].is_empty() { keys[at].clone() } else { format!("{} / {}", keys[at], keys[at + 1]) };
            keys[..at].iter().cloned().chain([batch]).chain(keys[at + 2..].iter().cloned()).collect()
        }
        _ if label(by).is_some() && keys[0].is_empty() => vec!["(none)".to_owned()],
        _ => keys,
    };
    let heads: Vec<&str> = heads(by).into_iter().filter(|head| *head != "name").collect();
    let sums = [
        Column::number("tasks").spare(),
        Column::number("spent"),
        Column::number("at risk").spare(),
        Column::number("unknown").spare(),
        Column::number("kept").spare(),
        Column::number("kept s").spare(),
        Column::number("$ per kept s"),
    ];
    // Without a choice, there is nothing to show.
    let sums = if books.totals.kept.decided == 0 { &sums[..4] } else { &sums[..] };
    let keys = heads.into_iter().map(|head| if head == "day" { Column::word(head) } else { Column::id(head) });
    let columns: Vec<Column<'_>> = keys.chain(sums.iter().copied()).collect();
    let sums = |line: &Line| cells(&line.sums, |usd| format!("{usd:#}"));
    let row = |line: &Line| joined(line.keys()).into_iter().chain(sums(line)).take(columns.len()).collect();
    let mut page = Page::new();
    page.table(&columns, books.lines.iter().map(row), terminal.width());
    let Sums { spent_usd, at_risk_usd, unknown_usd, kept, .. } = books.totals;
    page.line("");
    let simulated = if books.simulated { " (simulated)" } else { "" };
    page.line(format_args!("spent: {spent_usd:#}{simulated}, at risk: {at_risk_usd:#}, unknown: {unknown_usd:#}"));
    let price = KeptView::from(kept).usd_per_kept_s.map(|usd| format!(", {usd:#} per kept second"));
    let no_price = || format!("; no price of a second, because {:#} of their charges is unknown", kept.unknown);
    if let Some(price) = price.or_else(|| (!kept.unknown.is_zero()).then(no_price)) {
        page.line(format_args!("kept: {} of {} decided videos{price}", kept.videos, kept.decided));
    }
    if let Some(usd) = books.face_reviews_usd.filter(|usd| !usd.is_zero()) {
        page.line(format_args!("face reviews of the manifest: {usd:#}, paid outside the service"));
    }
    page
}

fn cells(sums: &Sums, money: impl Fn(Usd) -> String) -> [String; 7] {
    let KeptView { kept, kept_s, usd_per_kept_s } = sums.kept.into();
    [
        sums.attempts.to_string(),
        money(sums.spent_usd),
        money(sums.at_risk_usd),
        money(sums.unknown_usd),
        kept.to_string(),
        kept_s.map(|seconds| seconds.to_string()).unwrap_or_default(),
        usd_per_kept_s.map(money).unwrap_or_default(),
    ]
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

/// The subjects of lines that are no label.
const SUBJECTS: [&str; 3] = ["day", "batch", "model"];

/// The label under `--by`, if it is one.
pub(super) fn label(by: Option<&str>) -> Option<&str> {
    by.filter(|by| !SUBJECTS.contains(by))
}

/// The headers of the grouping columns. Without `--by`, these are day, batch, and model.
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
    /// A line for each day, batch, and model, or for each value of `--by`.
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
    /// The value of the label; empty for jobs without this label.
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
    /// Of tasks that are not completed, if the time of their charge is not documented.
    pub unknown_usd: Usd,
    #[serde(flatten)]
    #[schemars(with = "KeptView")]
    kept: Kept,
}

/// The jobs with a choice.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[serde(into = "KeptView")]
pub(super) struct Kept {
    /// The number of jobs with a choice.
    decided: u32,
    /// The charges of these jobs, of all their takes, and those that are unknown.
    usd: Usd,
    unknown: Usd,
    videos: u32,
    /// The duration of the kept videos, and the number of those whose duration is unknown.
    ms: u64,
    unmeasured: u32,
}

/// The jobs whose videos are kept.
#[derive(Serialize, JsonSchema)]
struct KeptView {
    /// The number of kept videos.
    kept: u32,
    /// Their seconds; null if the duration of one is unknown.
    kept_s: Option<f64>,
    /// The charges of the jobs with a choice, of all their takes, for each second of a kept video. Null below ten such jobs, and if a charge is unknown.
    usd_per_kept_s: Option<Usd>,
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
    pub(super) fn keys(&self) -> Vec<String> {
        let day = self.day.map(|day| day.to_string());
        [&day, &self.name, &self.batch, &self.model, &self.label].into_iter().flatten().cloned().collect()
    }
}

impl SpendView {
    /// Sums by the grouping that was requested, in order. Days are those of a time zone.
    pub(super) fn new(
        spending: &[Spending],
        decided: &[(&(BatchKey, Attempt), Kept)],
        simulated: bool,
        by: Option<&str>,
        zone: &TimeZone,
    ) -> Self {
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
        for ((batch, Attempt { purchase, intended_at, .. }), kept) in decided {
            let sums = Sums { kept: *kept, ..Sums::default() };
            add(*intended_at, batch, &purchase.model, &purchase.labels, &sums);
        }
        let lines: Vec<Line> = lines.into_values().collect();
        let mut totals = Sums::default();
        for line in &lines {
            totals.add(&line.sums);
        }
        Self { schema_version: 1, simulated, by: by.map(str::to_owned), lines, totals, face_reviews_usd: None }
    }
}
