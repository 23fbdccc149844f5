//! The page itself: the part above the cards, the cards one by one, and the part below.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use askama::Template;
use jiff::Timestamp;

use super::card::{Group, base_of};
use super::policy::Policy;
use super::problems::{Problem, problems};
use crate::domain::BatchKey;
use crate::report::Commands;
use crate::report::row::{JobState, Row, Totals};
use crate::report::rows::Report;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The part above the cards.
#[derive(Template)]
#[template(path = "page.html")]
struct Top<'p> {
    policy: Policy,
    version: &'static str,
    style: &'static str,
    key: &'p BatchKey,
    simulated: bool,
    written_at: Timestamp,
    written_for_people: String,
    totals: &'p Totals,
    finished: usize,
    problems: Vec<Problem>,
    /// The states of the jobs. States that need attention come first, because a long list is cut.
    chips: Vec<Chip>,
    models: Vec<&'p str>,
    tags: Vec<&'p str>,
    /// The command that takes saved choices, if it is known.
    retake: Option<String>,
}

/// A state that some jobs are in.
struct Chip {
    name: &'static str,
    label: String,
    count: usize,
}

/// The part below the cards.
#[derive(Template)]
#[template(path = "foot.html")]
struct Foot {
    script: &'static str,
}

/// Writes a contact sheet that is in a directory.
pub(crate) fn write(
    report: &Report,
    directory: &Path,
    written_at: Timestamp,
    commands: Option<&Commands>,
    to: &mut impl Write,
) -> io::Result<()> {
    top(report, written_at, commands).write_into(to)?;
    let mut rows = report.rows_seen_from(directory).peekable();
    while let Some(first) = rows.next() {
        // The takes of a job follow each other.
        let mut takes = vec![first];
        while let Some(next) = rows.next_if(|row: &Row| row.take > 1 && base_of(row) == base_of(&takes[0])) {
            takes.push(next);
        }
        Group::new(&takes, report.simulated, commands).write_into(to)?;
    }
    Foot { script: SCRIPT }.write_into(to)
}

fn top<'p>(report: &'p Report, written_at: Timestamp, commands: Option<&Commands>) -> Top<'p> {
    let totals = &report.totals;
    let mut policy = Policy::new(STYLE, SCRIPT);
    let (mut models, mut tags) = (BTreeSet::new(), BTreeSet::new());
    for (job, _, shown) in report.shown() {
        policy.allow_videos_of(shown.and_then(|shown| shown.video_url.as_deref()).filter(|_| !report.simulated));
        models.insert(shown.map_or(&*job.spec.model, |shown| &*shown.purchase.model));
        tags.extend(job.tags.iter().map(String::as_str));
    }
    let count = |state: JobState| totals.states.get(state.name()).copied().unwrap_or(0);
    let chips = JobState::ALL.into_iter().rev().filter(|state| count(*state) > 0);
    Top {
        policy,
        version: env!("CARGO_PKG_VERSION"),
        style: STYLE,
        key: &report.key,
        simulated: report.simulated,
        written_at,
        written_for_people: written_at.strftime("%-d %B %Y, %H:%M UTC").to_string(),
        totals,
        finished: count(JobState::Completed),
        problems: problems(report, commands),
        chips: chips.map(|state| Chip { name: state.name(), label: state.label(), count: count(state) }).collect(),
        models: models.into_iter().collect(),
        tags: tags.into_iter().collect(),
        // The usual directory of a browser; the page can't know where it saves.
        retake: commands.map(|commands| commands.line("run", &["--retake", "@~/Downloads/choices.json"])),
    }
}
