//! Jobs in doubt, with all facts that help to look them up at the service.

use unicode_width::UnicodeWidthStr as _;

use super::command::NextCommand;
use super::lines::count;
use super::page::Page;
use super::table::shortened;
use crate::domain::{Attempt, BatchKey, History, TaskId, Usd};

/// The columns of an id and of a prompt, where there is too much of them.
const ID: usize = 32;
const PROMPT: usize = 72;

/// The submissions of a batch of which no one knows what came, oldest first; `again` is what leads back to it.
pub(crate) fn doubts(history: &History, again: &NextCommand) -> Page {
    let mut page = Page::new();
    let doubtful: Vec<&Attempt> = history.attempts().filter(|attempt| attempt.state.is_doubtful()).collect();
    if doubtful.is_empty() {
        page.line("no jobs in doubt");
        return page;
    }
    let at_risk: Usd = doubtful.iter().map(|attempt| attempt.purchase.price).sum();
    page.line(format_args!("{} in doubt, ${at_risk} at risk", count(doubtful.len(), "submission")));
    page.line("");
    let widest = |text: fn(&Attempt) -> String| doubtful.iter().map(|attempt| text(attempt).width()).max().unwrap_or(0);
    let (jobs, costs) = (widest(job), widest(cost));
    for attempt in doubtful {
        let (job, cost, at) = (job(attempt), cost(attempt), attempt.intended_at.strftime("%F %T%.3f UTC"));
        page.line(format_args!("  {job:jobs$}  {at}  {cost:>costs$}  {}", prompt(attempt)));
        // In full: the id of a task may be in it.
        page.line(format_args!("  {:jobs$}  {}", "", known(attempt)));
        if let Some(id) = held_id(attempt) {
            let command = again.command("resolve", &[attempt.job().as_str(), "--task", &id]);
            page.line(format_args!("  {:jobs$}  if `{id}` is its task: {command}", ""));
        }
    }
    page.line("");
    page.line("Look up each job at the service by time and prompt. If a task exists:");
    page.line(format_args!("  {}", again.command("resolve", &["JOB", "--task", "ID"])));
    page.line("If none exists, make the job due again; JOB can be a pattern:");
    page.line(format_args!("  {}", again.command("resolve", &["JOB", "--never-created"])));
    page
}

/// The jobs in doubt of another batch of the same name.
pub(crate) fn doubts_elsewhere(batch: &BatchKey, doubtful: u32, at_risk: Usd, again: &NextCommand) -> String {
    let submissions = count(usize::try_from(doubtful).unwrap_or(usize::MAX), "submission");
    format!("in `{batch}`: {submissions} in doubt, ${at_risk} at risk: {}", again.command("resolve", &[]))
}

fn job(attempt: &Attempt) -> String {
    shortened(attempt.job().as_str(), ID)
}

fn cost(attempt: &Attempt) -> String {
    format!("${}", attempt.purchase.price)
}

fn prompt(attempt: &Attempt) -> String {
    let sent: serde_json::Value = serde_json::from_str(attempt.purchase.request.body()).unwrap_or_default();
    shortened(sent["prompt"].as_str().unwrap_or_default(), PROMPT)
}

/// The fields of a response that may hold the task ID, as JSON pointers. None of them is documented, so the user decides.
const HELD_IDS: &str = "/id /task_id /data/task_id /data/id /data/0/id /output/task_id /job_id /request_id";

/// The task ID that the response to a job in doubt may hold.
fn held_id(attempt: &Attempt) -> Option<String> {
    let response = &attempt.error.as_ref()?.raw;
    let text = |place: &str| response.pointer(place)?.as_str().map(str::to_owned);
    HELD_IDS.split(' ').find_map(text).filter(|id| TaskId::new(id.as_str()).is_some())
}

fn known(attempt: &Attempt) -> &str {
    attempt.error.as_ref().map_or("a run sends it now, or was killed before the response", |error| &error.message)
}
