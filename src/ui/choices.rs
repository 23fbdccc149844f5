//! Choices of reviewers, and what follows from them, as text.

use std::path::Path;
use std::sync::Arc;

use super::command::NextCommand;
use super::lines::count;
use super::notes::listed;
use super::page::Page;
use crate::domain::{Choice, History, Job, JobChoice, ReviewOfTask, Takes};

/// The content of a file of choices.
pub(crate) fn choices_of(reviews: &[ReviewOfTask], file: &Path) -> String {
    let of = |wanted: Choice| reviews.iter().filter(|it| it.review.choice == Some(wanted)).count();
    let notes = reviews.iter().filter(|it| !it.review.note.is_empty()).count();
    let by = reviews.first().map(|it| format!(" by {}", it.review.by)).unwrap_or_default();
    let (keep, retake) = (of(Choice::Keep), of(Choice::Retake));
    format!("{}{by}: {keep} keep, {retake} retake, {}", file.display(), count(notes, "note"))
}

/// The choices of a batch after a record of `new` ones.
pub(crate) fn choices_recorded(new: usize, jobs: &[Arc<Job>], history: &History, again: &NextCommand) -> Page {
    let choice_of = |job: &Job| Takes::of(job.request.fingerprint(), history.of(&job.id))?.choice;
    let with = |wanted: JobChoice| -> Vec<&str> {
        jobs.iter().filter(|job| choice_of(job) == Some(wanted)).map(|job| job.id.as_str()).collect()
    };
    let mut page = Page::new();
    page.line(format_args!("recorded {}; nothing was spent", count(new, "new choice")));
    let conflicts = with(JobChoice::Conflict);
    if !conflicts.is_empty() {
        page.line(format_args!("in conflict, so nothing is bought: {}", listed(&conflicts)));
    }
    let retakes = with(JobChoice::Retake);
    if !retakes.is_empty() {
        page.line(format_args!("to retake: {}", listed(&retakes)));
        let run = again.command("run", &["--retake", "@ledger"]);
        page.line(format_args!("to see what the retakes cost: `{run} --plan`"));
    }
    page
}

/// The number of archived videos, and the directory of the copies.
pub(crate) fn archived(videos: usize, to: Option<&Path>) -> Page {
    let mut page = Page::new();
    let to = to.map(|to| format!(", moved to {}", to.display())).unwrap_or_default();
    page.line(format_args!("archived {}{to}; runs neither download nor miss them", count(videos, "video")));
    page
}

/// The outcome of an import.
pub(crate) fn imported(imported: usize, known: usize, refused: usize) -> String {
    let known = if known > 0 { format!(", {known} known already") } else { String::new() };
    let refused = if refused > 0 { format!(", {refused} refused") } else { String::new() };
    format!("imported {}{known}{refused}; nothing was submitted or spent", count(imported, "task"))
}
