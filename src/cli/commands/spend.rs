//! `shotlist spend`: money by day, batch, model, or label, from the ledger only.

use jiff::Timestamp;

use crate::catalog::Catalog;
use crate::cli::args::{SpendArgs, SpendFormat};
use crate::cli::exit::{Exit, Failure, failure};
use crate::cli::options;
use crate::cli::program::block_on;
use crate::domain::{NoticeCode, Usd};
use crate::files::own_zone;
use crate::manifest::{Options, load};
use crate::session::spend::{self, KeptView, Line, SpendView, Sums};
use crate::ui::{Column, Page, Terminal};

/// Shows the spending. Days follow the machine's time zone.
pub(super) fn spend(args: &SpendArgs, terminal: &Terminal) -> Result<Exit, Failure> {
    let zone = own_zone()?;
    let start = args.since.map(|day| day.to_zoned(zone.clone())).transpose();
    let start = start.map_err(|error| failure!(OptionInvalid, "`--since`: {error}"))?;
    let since = start.map_or(Timestamp::MIN, |start| start.timestamp());
    let ledger = options::existing_ledger(args.ledger.as_ref(), args.manifest.as_deref(), args.sandbox)?;
    let by = args.by.as_deref();
    let mut books = block_on(async { Ok(SpendView::from_ledger(&ledger, since, by, &zone).await?) })?;
    if let Some(name) = spend::label(by) {
        refuse_unknown(name, &books)?;
    }
    if let Some(path) = args.manifest.as_deref().filter(|path| path.is_file() && !ledger.is_simulated()) {
        let reviews = load(&Options::new(path), Catalog::embedded()).face_reviews();
        if reviews.is_none() {
            let text = format!("can't read the faces of `{}`, so their review fees are not shown", path.display());
            terminal.warning(NoticeCode::FacesNotRead, &text);
        }
        books.face_reviews_usd = reviews.map(|reviews| reviews.usd(args.since));
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
fn refuse_unknown(label: &str, books: &SpendView) -> Result<(), Failure> {
    if books.labels.contains(label) || books.lines.is_empty() {
        return Ok(());
    }
    let failure = failure!(LabelUnknown, "`--by {label}`: no submitted job has this label");
    let known: Vec<&str> = books.labels.iter().map(String::as_str).collect();
    Err(failure.with_help(if known.is_empty() {
        "pass `day`, `batch`, or `model`; a job has a label if you set `labels: { client: acme }` before it is submitted"
            .to_owned()
    } else {
        format!("pass `day`, `batch`, `model`, or one of the labels: {}", known.join(", "))
    }))
}

fn csv(books: &SpendView, by: Option<&str>) -> std::io::Result<Page> {
    let sums = ["attempts", "spent_usd", "at_risk_usd", "unknown_usd", "kept", "kept_s", "usd_per_kept_s"];
    let head: Vec<String> = heads(by).into_iter().chain(sums).map(str::to_owned).collect();
    let rows = books
        .lines
        .iter()
        .map(|line| line.keys().into_iter().chain(cells(&line.sums, |usd| usd.to_string())).collect());
    Page::csv([head].into_iter().chain(rows))
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
        _ if spend::label(by).is_some() && keys[0].is_empty() => vec!["(none)".to_owned()],
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

/// The headers of the grouping columns. Without `--by`, these are day, batch, and model.
pub(super) fn heads(by: Option<&str>) -> Vec<&str> {
    match by {
        None => vec!["day", "name", "batch", "model"],
        Some("batch") => vec!["name", "batch"],
        Some(one) => vec![one],
    }
}
