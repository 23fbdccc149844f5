//! `shotlist spend`: money by day, batch and model, from the ledger alone.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;

use super::args::{SpendArgs, StatusFormat};
use super::exit::Exit;
use super::failure::{Failure, chain};
use crate::domain::{Charge, Usd};
use crate::ledger::{Kind, Spending, read_spending};
use crate::ui::{Page, Terminal};

/// One line of the books.
#[derive(Debug, Serialize)]
struct Line {
    day: Date,
    name: String,
    batch: String,
    model: String,
    attempts: u32,
    spent_usd: Usd,
    at_risk_usd: Usd,
    unknown_usd: Usd,
}

/// Shows what was spent. Days are those of this machine's time zone.
pub fn spend(args: &SpendArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let zone = TimeZone::system();
    let since = match args.since {
        None => Timestamp::MIN,
        Some(day) => {
            let start = day.to_zoned(zone.clone());
            start.map_err(|error| Failure::plain(Exit::Usage, format!("--since: {error}")))?.timestamp()
        }
    };
    if !args.ledger.exists() {
        let failure = Failure::plain(Exit::Usage, format!("there is no ledger at {}", args.ledger.display()));
        return Err(failure.with_help("name it with --ledger; it lies in .shotlist beside the manifest"));
    }
    let spending = read_spending(&args.ledger, Kind::Real, since);
    let spending = spending.map_err(|error| Failure::plain(Exit::CannotWrite, chain(&error)))?;
    let lines = lines(&spending, &zone);
    let text = match args.format {
        StatusFormat::Json => {
            let json = Page::json(&serde_json::json!({ "lines": lines, "totals": totals(&lines) }));
            json.map_err(|error| Failure::plain(Exit::CannotWrite, error.to_string()))?
        }
        StatusFormat::Text => text(&lines, terminal),
    };
    terminal.result(&text);
    Ok(Exit::Done)
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

fn totals(lines: &[Line]) -> serde_json::Value {
    let sum = |amount: fn(&Line) -> Usd| lines.iter().map(amount).sum::<Usd>();
    serde_json::json!({
        "attempts": lines.iter().map(|line| line.attempts).sum::<u32>(),
        "spent_usd": sum(|line| line.spent_usd),
        "at_risk_usd": sum(|line| line.at_risk_usd),
        "unknown_usd": sum(|line| line.unknown_usd),
    })
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
    let sum = |amount: fn(&Line) -> Usd| lines.iter().map(amount).sum::<Usd>();
    page.line("");
    page.line(format_args!(
        "spent: ${}, at risk: ${}, unknown: ${}",
        sum(|line| line.spent_usd),
        sum(|line| line.at_risk_usd),
        sum(|line| line.unknown_usd)
    ));
    page
}
