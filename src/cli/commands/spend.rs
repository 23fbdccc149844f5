//! `shotlist spend`: money by day, batch and model, from the ledger alone.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::args::{SpendArgs, StatusFormat};
use crate::cli::exit::Exit;
use crate::cli::failure::Failure;
use crate::cli::{paths, runtime};
use crate::domain::{Charge, Usd};
use crate::ledger::{Ledger as _, Spending, SqliteLedger};
use crate::manifest::is_stream;
use crate::ui::{Page, Terminal};

/// What was spent, by day, batch and model.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "shotlist spend")]
pub(super) struct SpendView {
    /// The version of this form: 1.
    schema_version: u32,
    /// A line for each day, batch and model.
    lines: Vec<Line>,
    /// Sums over the lines.
    totals: SpendTotals,
}

/// One line of the books.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    /// The day, in this machine's time zone.
    #[schemars(with = "String")]
    day: Date,
    /// The manifest's name.
    name: String,
    /// The batch value; empty where the manifest has none.
    batch: String,
    /// The model.
    model: String,
    /// Submissions that were charged, or may have been.
    attempts: u32,
    /// Certainly charged.
    spent_usd: Usd,
    /// In doubt.
    at_risk_usd: Usd,
    /// Of tasks of which nobody documents when they are charged, and that are not completed.
    unknown_usd: Usd,
}

/// Sums over the lines.
#[derive(Debug, Serialize, JsonSchema)]
struct SpendTotals {
    attempts: u32,
    spent_usd: Usd,
    at_risk_usd: Usd,
    unknown_usd: Usd,
}

/// Shows what was spent. Days are those of this machine's time zone.
pub(super) fn spend(args: &SpendArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let zone = TimeZone::system();
    let since = match args.since {
        None => Timestamp::MIN,
        Some(day) => {
            let start = day.to_zoned(zone.clone());
            start.map_err(|error| Failure::plain(Exit::Usage, format!("--since: {error}")))?.timestamp()
        }
    };
    let ledger = ledger(args)?;
    let spending = runtime::block_on(async { Ok(ledger.spending(since).await?) });
    let spending = spending.map_err(Failure::without_money)?;
    let lines = lines(&spending, &zone);
    let text = match args.format {
        StatusFormat::Json => {
            let totals = totals(&lines);
            let json = Page::json(&SpendView { schema_version: 1, lines, totals });
            json.map_err(|error| Failure::of_form(&error))?
        }
        StatusFormat::Text => text(&lines, terminal),
    };
    terminal.result(&text);
    Ok(Exit::Done)
}

fn ledger(args: &SpendArgs) -> Result<SqliteLedger, Failure> {
    if let Some(manifest) = args.manifest.as_deref().filter(|manifest| !manifest.exists() && !is_stream(manifest)) {
        let failure = Failure::plain(Exit::Usage, format!("there is no manifest {}", manifest.display()));
        return Err(failure
            .with_help("name a manifest, or its ledger with --ledger; without either, it is the working folder's"));
    }
    let manifest = args.manifest.as_deref().unwrap_or(Path::new(""));
    let ledger = paths::ledger_of(args.ledger.as_deref(), manifest, args.sandbox)?;
    if ledger.exists() {
        return Ok(ledger);
    }
    let failure = Failure::plain(Exit::Usage, format!("there is no ledger at {ledger}"));
    if args.manifest.is_some() && args.ledger.is_none() {
        return Err(failure.with_help("nothing was bought with this manifest here yet; --sandbox is for rehearsals"));
    }
    Err(failure.with_help("name a manifest, `shotlist spend MANIFEST`, or the ledger with --ledger; it lies in .shotlist beside the manifest"))
}

fn lines(spending: &[Spending], zone: &TimeZone) -> Vec<Line> {
    let mut lines: BTreeMap<(Date, String, String, String), Line> = BTreeMap::new();
    for spending in spending.iter().filter(|spending| spending.charge != Charge::None) {
        let day = spending.at.to_zoned(zone.clone()).date();
        let key = (day, spending.batch.name.clone(), spending.batch.batch.clone(), spending.model.clone());
        let line = lines.entry(key).or_insert_with_key(|(day, name, batch, model)| Line {
            day: *day,
            name: name.clone(),
            batch: batch.clone(),
            model: model.clone(),
            attempts: 0,
            spent_usd: Usd::ZERO,
            at_risk_usd: Usd::ZERO,
            unknown_usd: Usd::ZERO,
        });
        line.attempts += spending.attempts;
        *match spending.charge {
            Charge::Unknown if spending.is_doubtful => &mut line.at_risk_usd,
            Charge::Unknown => &mut line.unknown_usd,
            _ => &mut line.spent_usd,
        } += spending.price;
    }
    lines.into_values().collect()
}

fn totals(lines: &[Line]) -> SpendTotals {
    let sum = |amount: fn(&Line) -> Usd| lines.iter().map(amount).sum::<Usd>();
    SpendTotals {
        attempts: lines.iter().map(|line| line.attempts).sum(),
        spent_usd: sum(|line| line.spent_usd),
        at_risk_usd: sum(|line| line.at_risk_usd),
        unknown_usd: sum(|line| line.unknown_usd),
    }
}

fn text(lines: &[Line], terminal: &Terminal) -> Page {
    let rows = lines.iter().map(|line| {
        let batch = if line.batch.is_empty() { line.name.clone() } else { format!("{} / {}", line.name, line.batch) };
        vec![
            line.day.to_string(),
            batch,
            line.model.clone(),
            line.attempts.to_string(),
            format!("${}", line.spent_usd),
            format!("${}", line.at_risk_usd),
            format!("${}", line.unknown_usd),
        ]
    });
    let header = ["day", "batch", "model", "tasks", "spent", "at risk", "unknown"];
    let mut page = Page::new();
    page.table(&header, &[3, 4, 5, 6], rows, terminal.width());
    let totals = totals(lines);
    page.line("");
    page.line(format_args!(
        "spent: ${}, at risk: ${}, unknown: ${}",
        totals.spent_usd, totals.at_risk_usd, totals.unknown_usd
    ));
    page
}
