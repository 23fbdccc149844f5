//! The plan for a comment on a pull request.

use std::fmt::Write as _;
use std::time::Duration;

use indexmap::IndexMap;

use super::notes::{details, repurchased, repurchased_jobs, sentence};
use super::page::{LAST_LINE, MAX_BYTES, Page, escaped, hidden, no_room};
use super::plan_text::cost;
use super::table::{listed, shortened, span};
use super::terminal::Terminal;
use crate::domain::{JobId, Usd, count};
use crate::plan::{Action, Plan, PlanNote, Planned, ServiceView, WarningView, by_model, changes, notes};
use crate::report::NextCommand;

/// The first characters of a plan as Markdown. CI finds and replaces its own comment by them.
const MARK: &str = "<!-- shotlist plan: ";
/// The most items of a list.
const LISTED: usize = 20;
/// The most characters of one warning.
const WARNING: usize = 300;
/// The width of a prompt in its row, in columns, at most.
const MAX_PROMPT_COLUMNS: usize = 60;
/// More rows than this are folded away.
const UNFOLDED: usize = 10;

/// The plan as GitHub-flavored Markdown, with the warnings of its manifest; `again` leads back to it.
pub(crate) fn plan_markdown(plan: &Plan, warnings: &[WarningView], again: &NextCommand) -> Page {
    let totals = plan.totals();
    let key = plan.key.to_string();
    let mut text = format!("{MARK}{} -->\n### Video plan: {}\n\n", hidden(&key), escaped(&key));
    let wall = span(Duration::from_secs(plan.estimate.wall_s));
    let mut put = |line: String| {
        let _infallible = writeln!(text, "{line}");
    };
    let (jobs, requests) = (count(totals.submit, "job"), count(plan.estimate.requests, "request"));
    put(format!("**{jobs} to submit for {:#}**, about {wall} and {requests}.", totals.cost_usd));
    stated(&mut put, plan, again);
    let lints = lints(warnings);
    if !lints.is_empty() {
        put("\n**Manifest warnings**:\n".to_owned());
        list(&mut put, lints.into_iter());
    }
    if can_be_approved(plan) {
        let (digest, twice, command) = (plan.digest(), twice(plan), approve(plan, again));
        put(format!("\nDigest `{digest}`. To buy exactly this{twice}:\n\n    {command}"));
    }
    put(String::new());
    let models = by_model(plan);
    if !models.is_empty() {
        put("| model | jobs | seconds | cost |\n|---|---:|---:|---:|".to_owned());
        for model in models {
            put(format!("| {} | {} | {} | {:#} |", escaped(model.model), model.jobs, model.seconds, model.cost_usd));
        }
        put(String::new());
    }
    sections(&mut text, plan);
    // Text from outside was escaped, and starts no line.
    let mut page = Page::new();
    text.lines().for_each(|line| page.line(line));
    page
}

/// Puts the notes of a plan. A comment has a bound, and other batches may be many.
fn stated(put: &mut impl FnMut(String), plan: &Plan, again: &NextCommand) {
    let is_other = |note: &PlanNote<'_>| matches!(note, PlanNote::OtherBatch(_));
    let mut others = 0;
    let stated = notes(plan).into_iter().filter(|note| {
        others += usize::from(is_other(note));
        !is_other(note) || others <= LISTED
    });
    for note in stated {
        let sentence = escaped(&capitalized(&sentence(&note, again)));
        put(if note.is_urgent() { format!("**{sentence}.**") } else { format!("{sentence}.") });
        let details = details(&note);
        if !details.is_empty() {
            list(put, details.iter().map(|line| escaped(line)));
        }
    }
    let unlisted = others.saturating_sub(LISTED);
    if unlisted > 0 {
        put(format!("Other batches not listed: {unlisted}. The text plan lists them all."));
    }
}

/// Adds the jobs that fit into [`MAX_BYTES`], those that need attention first.
fn sections(text: &mut String, plan: &Plan) {
    use Action::{Changed, Done, Failed, Fetch, Hold, InDoubt, Resume, Retake, Retry, Stale, Submit};
    let mut left_out = 0;
    for action in [InDoubt, Failed, Changed, Retry, Retake, Submit, Resume, Hold, Stale, Fetch, Done] {
        let jobs: Vec<&Planned> = plan.jobs.iter().filter(|planned| planned.action == action).collect();
        if jobs.is_empty() {
            continue;
        }
        let (section, shown) = section(action, &jobs, MAX_BYTES.saturating_sub(text.len() + LAST_LINE));
        left_out += jobs.len() - shown;
        text.push_str(&section);
    }
    if left_out > 0 {
        let _infallible = writeln!(text, "{}", no_room(left_out));
    }
}

/// A clause with its first letter in upper case, unless it starts with the name of a file.
fn capitalized(clause: &str) -> String {
    if clause.split(' ').next().is_some_and(|word| word.contains(['.', '/'])) {
        return clause.to_owned();
    }
    let mut rest = clause.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Puts a list, as long as a comment may have it.
fn list(put: &mut impl FnMut(String), items: impl ExactSizeIterator<Item = String>) {
    let more = items.len().saturating_sub(LISTED);
    items.take(LISTED).for_each(|item| put(format!("- {item}")));
    if more > 0 {
        put(format!("- … and {more} more"));
    }
    put(String::new());
}

/// The warnings of the manifest, each once with its jobs, in the order of the first ones.
fn lints(warnings: &[WarningView]) -> Vec<String> {
    let mut lints: IndexMap<&str, Vec<&str>> = IndexMap::new();
    for WarningView { job, message, .. } in warnings {
        lints.entry(message).or_default().extend(job.as_deref());
    }
    // The ID of an unselected job may be any string.
    let named = |id: &&str| {
        if JobId::new(*id).is_ok() { format!("`{id}`") } else { escaped(&shortened(id, WARNING)) }
    };
    let shown = lints.into_iter().map(|(message, jobs)| {
        let message = escaped(&shortened(message, WARNING));
        if jobs.is_empty() { message } else { format!("{}: {message}", listed(jobs.iter().map(named))) }
    });
    shown.collect()
}

/// The jobs of one action, as many as fit into `room` bytes, and their number.
fn section(action: Action, jobs: &[&Planned], room: usize) -> (String, usize) {
    let sum: Usd = jobs.iter().map(|planned| planned.cost).sum();
    let sum = if sum.is_zero() { String::new() } else { format!(" ({sum:#})") };
    let title = format!("{}: {}{sum}", action.name().replace('_', " "), jobs.len());
    let mut rows =
        String::from("| job | prompt | model | length | shape | cost | why |\n|---|---|---|---:|---|---:|---|\n");
    let (mut whole, mut shown) = (String::new(), 0);
    for planned in jobs {
        let (row, text) = (row(action, planned), whole_texts(planned));
        if rows.len() + whole.len() + row.len() + text.len() + title.len() + LAST_LINE > room {
            break;
        }
        rows.push_str(&row);
        whole.push_str(&text);
        shown += 1;
    }
    if !whole.is_empty() {
        rows.push_str(&format!("\n<details><summary>whole prompts and changes</summary>\n\n{whole}\n</details>\n"));
    }
    let section = if shown == 0 {
        format!("**{title}**\n")
    } else if jobs.len() > UNFOLDED {
        format!("<details><summary>{title}</summary>\n\n{rows}\n</details>\n")
    } else {
        format!("**{title}**\n\n{rows}")
    };
    (section + "\n", shown)
}

/// A job as a row. The reason ends with the notes of reviewers.
fn row(action: Action, planned: &Planned) -> String {
    let (id, spec) = (planned.job.id().as_str(), &planned.job.spec);
    let notes = planned.previous.iter().flat_map(|previous| previous.notes.iter().map(|note| format!("; {note}")));
    let reason = escaped(&format!("{}{}", planned.reason, notes.collect::<String>()));
    let length = spec.duration.map_or_else(String::new, |seconds| format!("{seconds} s"));
    let prompt = escaped(&shortened(spec.prompt.as_deref().unwrap_or_default(), MAX_PROMPT_COLUMNS));
    let (model, shape) = (escaped(&spec.model), escaped(spec.shape().unwrap_or_default()));
    format!("| `{id}` | {prompt} | {model} | {length} | {shape} | {} | {reason} |\n", cost(action, &[planned]))
}

/// The prompt of a job if its row cuts it off, and the values before and after each change.
fn whole_texts(planned: &Planned) -> String {
    let (id, mut text) = (planned.job.id().as_str(), String::new());
    let mut put = |what: &str, value: &str| text.push_str(&format!("- `{id}` {what}: {}\n", escaped(value)));
    let mut is_prompt_shown = false;
    if planned.action == Action::Changed
        && let Some(previous) = &planned.previous
    {
        let plain = |value: Option<serde_json::Value>| match value {
            Some(serde_json::Value::String(text)) => text,
            Some(value) => value.to_string(),
            None => "(none)".to_owned(),
        };
        for (field, before, after) in changes(&previous.request, planned.job.purchase.request.body()) {
            is_prompt_shown |= field == "prompt";
            put(&format!("{field} before"), &plain(before));
            put(&format!("{field} now"), &plain(after));
        }
    }
    let prompt = planned.job.spec.prompt.as_deref().unwrap_or_default();
    if !is_prompt_shown && shortened(prompt, MAX_PROMPT_COLUMNS) != shortened(prompt, usize::MAX) {
        put("prompt", prompt);
    }
    text
}

/// The digest of a plan and the command that buys it and nothing else; nothing if it buys nothing. `again` is all that leads to the plan.
pub(crate) fn to_approve(plan: &Plan, again: &NextCommand, terminal: &Terminal) -> Page {
    let mut page = Page::new();
    if can_be_approved(plan) {
        // A person copies the command.
        if terminal.verbosity > 0 || !terminal.shows_results() {
            page.line(format_args!("digest: {}", plan.digest()));
        }
        page.line(format_args!("to buy exactly this{}: {}", twice(plan), approve(plan, again)));
    }
    page
}

/// Returns whether a plan buys anything, and may.
pub(super) fn can_be_approved(plan: &Plan) -> bool {
    plan.is_within_limits() && plan.jobs.iter().any(|planned| planned.is_to_be_approved)
}

/// The jobs of a plan that are paid for already, as a part of a sentence.
fn twice(plan: &Plan) -> String {
    let jobs = repurchased_jobs(plan).len();
    if jobs == 0 { String::new() } else { format!(", and pay again for {}", count(jobs, "job")) }
}

/// The command that buys exactly a plan, including the paid jobs that it buys again.
pub(super) fn approve(plan: &Plan, again: &NextCommand) -> String {
    let (approved, shown) = (["--approved", plan.digest().as_str()], repurchased(plan));
    let consent: &[&str] = if plan.already_paid.is_empty() { &[] } else { &["--buy-again", &shown] };
    again.command("run", &[&approved, consent].concat())
}

/// The services that a saved plan and a run name.
pub(crate) fn other_service(approved: &ServiceView, now: &ServiceView) -> String {
    let named = |service: &ServiceView| {
        let url = service.base_url.as_deref().unwrap_or("no URL");
        match &*service.headers {
            [] => format!("`{url}`"),
            headers => format!("`{url}` with the headers {}", headers.join(", ")),
        }
    };
    format!("the approved plan names another service: {}, found {}", named(approved), named(now))
}
