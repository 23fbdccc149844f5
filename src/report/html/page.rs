//! The page itself: what is above the cards, the cards one by one, and what is below.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use askama::Template;
use jiff::Timestamp;

use super::card::{Group, base_of};
use super::charts::{ModelBar, StateBar, Sums, model_bars, state_bars};
use super::frame::{Chip, Foot, Head, Tools};
use super::problems::{Problem, problems};
use super::timeline::{Tasks, Timeline};
use crate::report::Commands;
use crate::report::row::{JobState, Row, Totals};
use crate::report::rows::Report;
use crate::report::times::Times;

/// The part above the cards.
#[derive(Template)]
#[template(path = "page.html")]
struct Page<'p> {
    head: Head,
    tools: Tools<'p>,
    simulated: bool,
    written_at: Timestamp,
    written_for_people: String,
    totals: &'p Totals,
    finished: usize,
    problems: Vec<Problem>,
    /// True if a task is active.
    is_running: bool,
    states: &'p [StateBar],
    models: &'p [ModelBar],
    timeline: Option<Timeline>,
}

/// Writes a contact sheet that is in a directory.
pub(crate) fn write(
    report: &Report,
    directory: &Path,
    written_at: Timestamp,
    commands: Option<&Commands>,
    to: &mut impl Write,
) -> io::Result<()> {
    write_top(report, written_at, commands, to)?;
    let mut rows = report.rows_seen_from(directory).peekable();
    while let Some(first) = rows.next() {
        // The takes of a job follow each other.
        let mut takes = vec![first];
        while let Some(next) = rows.next_if(|row: &Row| row.take > 1 && base_of(row) == base_of(&takes[0])) {
            takes.push(next);
        }
        Group::new(&takes, report.simulated, commands).write_into(to)?;
    }
    Foot::new(&BTreeMap::new()).write_into(to)
}

fn write_top(
    report: &Report,
    written_at: Timestamp,
    commands: Option<&Commands>,
    to: &mut impl Write,
) -> io::Result<()> {
    let totals = &report.totals;
    let mut policy = Head::policy();
    let (mut tags, mut tasks, mut sums) = (BTreeSet::new(), Tasks::default(), Sums::default());
    for (job, state, shown) in report.shown() {
        policy.allow_videos_of(shown.and_then(|shown| shown.video_url.as_deref()).filter(|_| !report.simulated));
        sums.add_open(job, state);
        tags.extend(job.tags.iter().map(String::as_str));
        if let Some(shown) = shown {
            tasks.add(job.id.as_str(), Times::of(shown));
        }
    }
    report.attempts().for_each(|attempt| sums.add(attempt));
    let (states, models) = (state_bars(totals), model_bars(&sums));
    // States that need attention come first, because a long list is cut.
    let worst_first = states.iter().rev();
    let chips = worst_first.map(|StateBar { name, label, count, .. }| Chip { name, label, class: name, count: *count });
    let page = Page {
        head: Head::new("contact sheet", policy, report.key.name.clone(), report.key.batch.clone()),
        tools: Tools {
            states: chips.collect(),
            models: models.iter().map(|bar| &*bar.model).collect(),
            tags: tags.into_iter().collect(),
            // The usual directory of a browser; the page can't know where it saves.
            retake: commands.map(|commands| commands.line("run", &["--retake", "@~/Downloads/choices.json"])),
        },
        simulated: report.simulated,
        written_at,
        written_for_people: written_at.strftime("%-d %B %Y, %H:%M UTC").to_string(),
        totals,
        finished: totals.states.get(JobState::Completed.name()).copied().unwrap_or(0),
        problems: problems(report, commands),
        is_running: [JobState::Queued, JobState::InProgress]
            .iter()
            .any(|state| totals.states.get(state.name()) > Some(&0)),
        states: &states,
        models: &models,
        timeline: Timeline::of(tasks, written_at),
    };
    page.write_into(to)
}
