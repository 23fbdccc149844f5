//! A bill against the ledger, for the user.

use super::page::Page;
use super::table::shortened;
use crate::bill::{Bill, Comparison, Matched};
use crate::domain::{BatchKey, TaskNames, Usd, count};
use crate::report::NextCommand;

/// The most lines of one kind that are reported one by one, and the most tasks that are offered for one doubt.
const LISTED: usize = 40;
const OFFERED: usize = 3;
/// The columns of a task's name, where there is too much of it.
const TASK: usize = 48;

/// The differences, the charges that the bill settles, and the sums. `is_said` is true if the user set its days, and
/// `again` leads to a batch.
pub(crate) fn reconciliation(
    bill: &Bill,
    comparison: &Comparison<'_>,
    is_said: bool,
    again: &dyn Fn(&BatchKey) -> NextCommand,
) -> Page {
    let mut page = Page::new();
    list(&mut page, "unreadable lines", &bill.unread, |unread| format!("line {}: {}", unread.number, unread.why));
    list(&mut page, "lines without a task", &comparison.others, |line| {
        format!("line {}: {:#}{}", line.number, line.usd, credit(line.is_credit))
    });
    list(&mut page, "amounts that differ", &comparison.differing, |matched| {
        let twice = if matched.charges > 1 { format!(", charged {} times", matched.charges) } else { String::new() };
        format!("{}: billed {:#}{twice}, ledger {:#}", of(matched), matched.billed, in_ledger(matched))
    });
    list(&mut page, "only on the bill", &comparison.strange, |line| {
        format!("line {}: {} {:#}{}", line.number, shortened(&line.task, TASK), line.usd, credit(line.is_credit))
    });
    list(&mut page, "only in the ledger", &comparison.missing, priced);
    list(
        &mut page,
        "unknown charge, and not on the bill (settled only inside `--since` and `--until`, if all lines match)",
        &comparison.unknown,
        priced,
    );
    doubts(&mut page, comparison, is_said, again);
    list(&mut page, "settled by the bill: charged", &comparison.charged, priced);
    list(&mut page, "settled by the bill: not charged", &comparison.free, priced);
    list(&mut page, "tasks of other accounts, left out", &comparison.of_others, priced);
    sums(&mut page, bill, comparison);
    page
}

fn list<T>(page: &mut Page, what: &str, found: &[T], line: impl Fn(&T) -> String) {
    if found.is_empty() {
        return;
    }
    page.line(format_args!("{what}: {}", found.len()));
    for one in found.iter().take(LISTED) {
        page.line(format_args!("  {}", line(one)));
    }
    if found.len() > LISTED {
        page.line(format_args!("  … and {} more", found.len() - LISTED));
    }
}

fn doubts(page: &mut Page, comparison: &Comparison<'_>, is_said: bool, again: &dyn Fn(&BatchKey) -> NextCommand) {
    if comparison.doubts.is_empty() {
        return;
    }
    let doubts = comparison.doubts.len();
    page.line(format_args!("in doubt: {doubts} (look up which line is whose, by its prompt at the service)"));
    for (matched, candidates) in comparison.doubts.iter().take(LISTED) {
        let (job, again) = (matched.attempt.job().as_str(), again(matched.batch));
        let at = matched.attempt.intended_at.strftime("%F %T UTC");
        let stands = match matched.attempt.particulars.declared {
            Some(declared) => format!("{:#}, {declared}", matched.attempt.purchase.price),
            None => format!("{:#} at risk", matched.attempt.purchase.price),
        };
        page.line(format_args!("  {}, {at}: {stands}", of(matched)));
        for line in candidates.iter().take(OFFERED) {
            let fits = if line.usd == matched.attempt.purchase.price {
                "fits".to_owned()
            } else {
                format!("of {:#}", line.usd)
            };
            let command = again.command("resolve", &[job, "--task", &line.task]);
            page.line(format_args!("    line {} {fits}: {command}", line.number));
        }
        if comparison.strange.is_empty() && is_said && matched.attempt.state.is_doubtful() {
            let command = again.command("resolve", &[job, "--never-created"]);
            page.line(format_args!("    no line on the bill; if none will follow: {command}"));
        }
    }
}

fn sums(page: &mut Page, bill: &Bill, comparison: &Comparison<'_>) {
    let sum = |matched: &[Matched<'_>]| matched.iter().map(|matched| matched.attempt.purchase.price).sum::<Usd>();
    let side = |is_credit: bool| {
        let lines = bill.lines.iter().filter(move |line| line.is_credit == is_credit);
        lines.map(|line| line.usd).sum::<Usd>()
    };
    let (charged, credited) = (side(false), side(true));
    let credited = if credited.is_zero() { String::new() } else { format!(", {credited:#} of it refunded") };
    let strange: Usd = comparison.strange.iter().filter(|line| !line.is_credit).map(|line| line.usd).sum();
    page.line(format_args!("bill: {charged:#} in {}{credited}", count(bill.lines.len(), "line")));
    page.line(format_args!(
        "agreed: {:#}, settled: {:#} charged and {:#} not, only on the bill: {strange:#}, only in the ledger: {:#}",
        comparison.agreed.iter().map(|matched| matched.billed).sum::<Usd>(),
        sum(&comparison.charged),
        sum(&comparison.free),
        sum(&comparison.missing),
    ));
    if !comparison.differing.is_empty() {
        let billed: Usd = comparison.differing.iter().map(|matched| matched.billed).sum();
        let known: Usd = comparison.differing.iter().map(in_ledger).sum();
        page.line(format_args!("at other amounts: {billed:#} on the bill, {known:#} in the ledger"));
    }
    if !comparison.unknown.is_empty() {
        page.line(format_args!("not settled: {:#}", sum(&comparison.unknown)));
    }
    page.line(if comparison.agrees() && bill.unread.is_empty() {
        "bill and ledger agree"
    } else {
        "bill and ledger differ"
    });
}

fn credit(is_credit: bool) -> &'static str {
    if is_credit { " refunded" } else { "" }
}

fn priced(matched: &Matched<'_>) -> String {
    format!("{} {:#}", of(matched), matched.attempt.purchase.price)
}

fn in_ledger(matched: &Matched<'_>) -> Usd {
    if matched.attempt.charge() == crate::domain::Charge::None { Usd::ZERO } else { matched.attempt.purchase.price }
}

fn of(matched: &Matched<'_>) -> String {
    let task = matched.attempt.task.as_ref().map(TaskNames::to_string).unwrap_or_default();
    let task = if task.is_empty() { task } else { format!(" ({})", shortened(&task, TASK)) };
    format!("{} of {}{task}", matched.attempt.job(), matched.batch)
}
