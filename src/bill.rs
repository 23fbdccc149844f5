//! Reads the service's bill from CSV, and compares it with the ledger.
//!
//! [`read`] parses the lines of a file with any column names, and reports unreadable ones: a guess would be about money. [`compare`]
//! matches lines and attempts by task ID, and returns agreements, differences, settled charges, and possible lines of jobs in doubt. Nothing here writes.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use crate::domain::{Account, Attempt, AttemptState, BatchKey, Charge, TaskNames, Usd};
use crate::files::table::{decoded, line_of, separated};

/// The maximum number of lines: more than a year of the largest manifests.
const MAX_LINES: usize = 10_000_000;

/// The meanings of columns.
#[derive(Clone, Debug)]
pub struct Columns<'c> {
    /// The task ID.
    pub task: &'c str,
    /// The amount in dollars.
    pub usd: &'c str,
    /// The time of the charge, or of the task.
    pub time: Option<&'c str>,
}

/// A bill.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Bill {
    /// The lines about tasks.
    pub lines: Vec<Line>,
    /// Lines without a task, except totals: fees, taxes, or other products.
    pub others: Vec<Line>,
    /// The unreadable lines.
    pub unread: Vec<Unread>,
}

/// An unreadable line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unread {
    /// The line in the file, from 1.
    pub number: u64,
    /// Its task, if it names one.
    pub task: String,
    /// The reason.
    pub why: String,
}

/// One line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// The line in the file, from 1.
    pub number: u64,
    /// The task ID on the bill.
    pub task: String,
    /// The amount.
    pub usd: Usd,
    /// True if the amount is refunded.
    pub is_credit: bool,
    /// The time, if the bill has one.
    pub at: Option<Timestamp>,
}

/// An invalid bill.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BillError {
    /// Its encoding is unknown.
    #[error("{0}; save it as CSV UTF-8")]
    Undecoded(String),
    /// It is empty.
    #[error("it is empty")]
    Empty,
    /// A named column is missing.
    #[error("found no column `{0}`; the columns are: {1}")]
    NoColumn(String, String),
    /// Two columns have the name.
    #[error("found two columns `{0}`")]
    TwoColumns(String),
    /// It is too long.
    #[error("it has more than {MAX_LINES} lines")]
    TooLong,
}

/// Reads a bill in any form of a spreadsheet program. Each unreadable line is reported.
pub fn read(bytes: Vec<u8>, columns: &Columns<'_>) -> Result<Bill, BillError> {
    let text = decoded(bytes, None).map_err(|why| BillError::Undecoded(why.to_string()))?;
    let (text, separator, before) = separated(&text);
    if text.trim().is_empty() {
        return Err(BillError::Empty);
    }
    let mut reader = csv::ReaderBuilder::new().delimiter(separator).flexible(true).from_reader(text.as_bytes());
    let heads = reader.headers().map_err(|_| BillError::Empty)?.clone();
    let place = |name: &str| column(&heads, name);
    let (task, usd, time) = (place(columns.task)?, place(columns.usd)?, columns.time.map(place).transpose()?);

    let mut bill = Bill::default();
    let (mut sum, mut totals) = (Usd::ZERO, Vec::new());
    for (index, record) in reader.records().enumerate() {
        if index == MAX_LINES {
            return Err(BillError::TooLong);
        }
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                let number = error.position().map_or(0, csv::Position::line) + before;
                bill.unread.push(Unread { number, task: String::new(), why: "it is not a line of CSV".to_owned() });
                continue;
            }
        };
        let number = line_of(text, &record) + before;
        let cell = |at: usize| record.get(at).unwrap_or_default().trim();
        let unread = |why: String| Unread { number, task: cell(task).to_owned(), why };
        if record.iter().all(|cell| cell.trim().is_empty()) {
            continue;
        }
        if record.len() != heads.len() {
            let why = format!("it has {} of {} cells: is the file whole?", record.len(), heads.len());
            bill.unread.push(unread(why));
            continue;
        }
        let (usd, is_credit) = match amount(cell(usd), separator) {
            Ok(amount) => amount,
            Err(why) => {
                bill.unread.push(unread(why));
                continue;
            }
        };
        let line =
            Line { number, task: cell(task).to_owned(), usd, is_credit, at: time.and_then(|at| moment(cell(at))) };
        if !line.task.is_empty() {
            // No tasks follow a total.
            bill.others.append(&mut totals);
            sum = if is_credit { sum.saturating_sub(usd) } else { sum + usd };
            bill.lines.push(line);
        } else if usd == sum && !is_credit && !usd.is_zero() {
            totals.push(line);
        } else if !usd.is_zero() {
            bill.others.push(line);
        }
    }
    Ok(bill)
}

fn column(heads: &csv::StringRecord, name: &str) -> Result<usize, BillError> {
    let named: Vec<usize> =
        heads.iter().enumerate().filter(|(_, head)| head.trim() == name.trim()).map(|(at, _)| at).collect();
    match named.as_slice() {
        [at] => Ok(*at),
        [] => Err(BillError::NoColumn(name.to_owned(), heads.iter().map(str::trim).collect::<Vec<_>>().join(", "))),
        _ => Err(BillError::TwoColumns(name.to_owned())),
    }
}

/// An amount in dollars, and whether it is refunded: `0.90`, `$0.90`, `-0.90`, `(0.90)`, `0.90 USD`, `1,234.50`, `3.75E+00`, and with semicolons between
/// cells `0,90`.
fn amount(cell: &str, separator: u8) -> Result<(Usd, bool), String> {
    let refused = || {
        let has_comma = cell.contains(',') && !cell.contains('.');
        let help = if has_comma { "; write a decimal point, because this comma is ambiguous" } else { "" };
        format!("`{cell}` must be an amount in USD{help}")
    };
    if cell.is_empty() {
        return Err("it has no amount".to_owned());
    }
    let in_brackets = cell.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let mut rest = in_brackets.unwrap_or(cell).trim();
    // Spreadsheets also write the mathematical minus sign.
    let minus = |text: &str| text.strip_prefix(['-', '\u{2212}']).map(str::len);
    let mut is_credit = in_brackets.is_some();
    for mark in ["", "$", "USD", "US$", "$"] {
        if let Some(length) = minus(rest).filter(|_| !is_credit) {
            (is_credit, rest) = (true, rest[rest.len() - length..].trim_start());
        }
        rest = rest.strip_prefix(mark).unwrap_or(rest).trim_start();
    }
    for mark in ["USD", "$"] {
        rest = rest.strip_suffix(mark).unwrap_or(rest).trim_end();
    }
    let digits = if separator == b';' { with_point(rest) } else { without_thousands(rest) }.ok_or_else(refused)?;
    let usd = Usd::of_calculated(&digits).ok_or_else(refused)?;
    Ok((usd, is_credit && !usd.is_zero()))
}

/// The amount with a decimal point, for a bill with semicolons between cells. Three digits after a single separator may be thousands: ambiguous.
fn with_point(text: &str) -> Option<String> {
    let Some((whole, digits)) = text.rsplit_once([',', '.']) else { return Some(text.to_owned()) };
    let is_only = !whole.contains([',', '.']);
    let (mark, thousands) = if text[whole.len()..].starts_with(',') { (',', '.') } else { ('.', ',') };
    let is_ambiguous = is_only && digits.len() == 3 && !whole.trim_start_matches('0').is_empty();
    if digits.is_empty() || is_ambiguous || whole.contains(mark) {
        return None;
    }
    without_thousands(&format!("{}.{digits}", whole.replace(thousands, ",")))
}

/// The amount without thousands separators, if a decimal point follows. Any other comma is ambiguous.
fn without_thousands(text: &str) -> Option<String> {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let is_grouped = groups.clone().next().is_some();
    if is_grouped && (rest.is_none() || first.is_empty() || first.len() > 3 || groups.any(|group| group.len() != 3)) {
        return None;
    }
    let whole = whole.replace(',', "");
    Some(rest.map_or(whole.clone(), |rest| format!("{whole}.{rest}")))
}

/// A time in the form of a bill. A day is its start in UTC. An unreadable time is ignored.
fn moment(cell: &str) -> Option<Timestamp> {
    let of_clock = |at: jiff::civil::DateTime| at.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|at| at.timestamp());
    cell.parse().ok().or_else(|| cell.parse().ok().and_then(of_clock))
}

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
    let named: HashSet<&'l Account> = entries.keys().map(|number| &bought[*number].1.account).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: Columns<'static> = Columns { task: "Task ID", usd: "Amount", time: Some("When") };

    #[test]
    fn amounts_are_read_as_bills_write_them_and_never_guessed() {
        let read = |cell: &str| {
            amount(cell, b',').map(|(usd, is_credit)| format!("{}{usd}", if is_credit { "-" } else { "" }))
        };
        for (cell, expected) in [
            ("0.90", "0.90"),
            ("$0.90", "0.90"),
            ("US$ 0.90", "0.90"),
            ("USD 3.75", "3.75"),
            ("3.75 USD", "3.75"),
            ("3.75$", "3.75"),
            ("1,234.50", "1234.50"),
            ("-0.90", "-0.90"),
            ("\u{2212}$0.90", "-0.90"),
            ("$-0.90", "-0.90"),
            ("(0.90)", "-0.90"),
            ("0", "0.00"),
            ("-0.00", "0.00"),
            ("3.75E+00", "3.75"),
            ("-9e-1", "-0.90"),
            ("3.7500000000000004", "3.75"),
            ("0.8999999999999999", "0.90"),
        ] {
            assert_eq!(read(cell).as_deref(), Ok(expected), "{cell}");
        }
        for cell in [
            "",
            "1,900",
            "€3.75",
            "3.75 EUR",
            "£1",
            "0,90",
            "1,23",
            "1,2345",
            "12,34,567",
            "NaN",
            "1e",
            "1e40",
            "3.7499999",
            "free",
            "--1",
            "0.0000001",
        ] {
            assert!(read(cell).is_err(), "{cell}: {:?}", read(cell));
        }
    }

    #[test]
    fn comma_is_a_decimal_point_between_semicolons() {
        let read = |cell: &str| amount(cell, b';').map(|(usd, _)| usd.to_string());
        for (cell, expected) in [
            ("0,90", "0.90"),
            ("3,7500000000000004", "3.75"),
            ("3,75E+00", "3.75"),
            ("0,125", "0.125"),
            ("3.75", "3.75"),
            ("1.234,50", "1234.50"),
            ("1,234.50", "1234.50"),
            ("$ 7,5", "7.50"),
            ("12", "12.00"),
        ] {
            assert_eq!(read(cell).as_deref(), Ok(expected), "{cell}");
        }
        for cell in ["1,900", "1.900", "1.234.567", "1,2,3", "12.34,5", ",", "1,"] {
            assert!(read(cell).is_err(), "{cell}: {:?}", read(cell));
        }
    }

    #[test]
    fn bill_is_read_with_its_columns_and_all_lines() {
        let text = "\u{feff}Invoice;When;Task ID;Amount\n1;2026-11-20;t1;0.90\n1;2026-11-20T10:00:00Z;t2;$3.75\n\n1;;;4.65\n1;;;1.00\n1;x;t3;3,750\n1;x\n";
        let bill = read(text.into(), &COLUMNS).expect("a bill");
        let shown: Vec<(u64, &str, String)> =
            bill.lines.iter().map(|line| (line.number, line.task.as_str(), line.usd.to_string())).collect();
        assert_eq!(shown, [(2, "t1", "0.90".to_owned()), (3, "t2", "3.75".to_owned())]);
        assert!(bill.lines.iter().all(|line| line.at.is_some()));
        assert_eq!(
            bill.others.iter().map(|line| line.usd.to_string()).collect::<Vec<_>>(),
            ["1.00"],
            "a total is no charge"
        );
        let unread: Vec<(u64, &str, &str)> =
            bill.unread.iter().map(|unread| (unread.number, unread.task.as_str(), &unread.why[..10])).collect();
        assert_eq!(unread, [(7, "t3", "`3,750` mu"), (8, "", "it has 2 o")]);
    }

    #[test]
    fn lines_are_counted_as_an_editor_does() {
        for text in [
            "task,usd\r\na,1\r\n\r\nb,2\r\n",
            "sep=,\ntask,usd\na,1\n\nb,2\n",
            "\"sep=,\"\r\ntask,usd\r\na,1\r\n\r\nb,2",
        ] {
            let bill = read(text.into(), &Columns { task: "task", usd: "usd", time: None }).expect("a bill");
            let above = u64::from(text.contains("sep="));
            let numbers: Vec<u64> = bill.lines.iter().map(|line| line.number).collect();
            assert_eq!(numbers, [2 + above, 4 + above], "{text:?}");
        }
    }

    #[test]
    fn invalid_bill_is_refused_with_help() {
        let refused = |text: &[u8]| read(text.to_vec(), &COLUMNS).expect_err("it is none").to_string();
        assert_eq!(refused(b""), "it is empty");
        assert_eq!(
            refused(b"Auftr\xe4ge;Gr\xf6\xdfe\n"),
            "it is neither UTF-8 nor UTF-16; as `windows-1252`, it would read `Auftr\u{e4}ge`, `Gr\u{f6}\u{df}e`; save it as CSV UTF-8"
        );
        assert_eq!(refused(b"\xff\xfet\0a\0s\0k\0"), "found no column `Task ID`; the columns are: task");
        assert_eq!(refused(b"task,usd\n"), "found no column `Task ID`; the columns are: task, usd");
        assert_eq!(refused(b"Task ID,Amount,Amount,When\n"), "found two columns `Amount`");
    }
}
