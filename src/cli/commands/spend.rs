//! `shotlist spend`: money by day, batch, model, or label, from the ledger only.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::cli::args::{SpendArgs, SpendFormat};
use crate::cli::exit::{Exit, Failure};
use crate::cli::paths;
use crate::cli::program::block_on;
use crate::domain::{Charge, NoticeCode, RefusalCode, Usd};
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
            start.map_err(|error| Failure::new(RefusalCode::OptionInvalid, format!("`--since`: {error}")))?.timestamp()
        }
    };
    let ledger = paths::existing_ledger(args.ledger.as_ref(), args.manifest.as_deref(), args.sandbox)?;
    let spending = block_on(async { Ok(ledger.spending(since).await?) })?;
    let by = args.by.as_deref();
    if let Some(name) = label(by) {
        refuse_unknown(name, &spending)?;
    }
    let mut books = SpendView::new(&spending, ledger.is_simulated(), by, &zone);
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
    let failure = Failure::new(RefusalCode::LabelUnknown, format!("`--by {label}`: no submitted job has this label"));
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
    let head = [heads(by), vec!["attempts", "spent_usd", "at_risk_usd", "unknown_usd"]].concat();
    let rows = books.lines.iter().map(|line| line.keys().into_iter().chain(cells(&line.sums, "")).collect());
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
    ];
    let keys = heads.into_iter().map(|head| if head == "day" { Column::word(head) } else { Column::id(head) });
    let columns: Vec<Column<'_>> = keys.chain(sums).collect();
    let row = |line: &Line| joined(line.keys()).into_iter().chain(cells(&line.sums, "$")).collect();
    let mut page = Page::new();
    page.table(&columns, books.lines.iter().map(row), terminal.width());
    let Sums { spent_usd, at_risk_usd, unknown_usd, .. } = books.totals;
    page.line("");
    let simulated = if books.simulated { " (simulated)" } else { "" };
    page.line(format_args!("spent: ${spent_usd}{simulated}, at risk: ${at_risk_usd}, unknown: ${unknown_usd}"));
    if let Some(usd) = books.face_reviews_usd.filter(|usd| !usd.is_zero()) {
        page.line(format_args!("face reviews of the manifest: ${usd}, paid outside the service"));
    }
    page
}

fn cells(sums: &Sums, sign: &str) -> [String; 4] {
    let money = |usd: Usd| format!("{sign}{usd}");
    [sums.attempts.to_string(), money(sums.spent_usd), money(sums.at_risk_usd), money(sums.unknown_usd)]
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
}

impl Sums {
    fn add(&mut self, other: &Self) {
        self.attempts += other.attempts;
        self.spent_usd += other.spent_usd;
        self.at_risk_usd += other.at_risk_usd;
        self.unknown_usd += other.unknown_usd;
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
            lines.entry(line.keys()).or_insert(line).sums.add(&Sums::for_spending(spending));
        }
        let lines: Vec<Line> = lines.into_values().collect();
        let mut totals = Sums::default();
        for line in &lines {
            totals.add(&line.sums);
        }
        Self { schema_version: 1, simulated, by: by.map(str::to_owned), lines, totals, face_reviews_usd: None }
    }
}
