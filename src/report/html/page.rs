//! The page itself: what stands above the cards, the cards one by one, and what stands below.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use jiff::Timestamp;
use minijinja::value::Serde;
use minijinja::{Environment, Value};
use serde::Serialize;

use super::card::{Group, base_of};
use super::charts::{ModelBar, StateBar, Sums, model_bars, state_bars};
use super::policy::Policy;
use super::problems::{Problem, problems};
use super::text::plain;
use super::timeline::{Tasks, Timeline};
use crate::report::Commands;
use crate::report::row::{JobState, Row};
use crate::report::rows::Report;

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("script.js");
const TEMPLATES: [(&str, &str); 8] = [
    ("page.html", include_str!("page.html")),
    ("group.html", include_str!("group.html")),
    ("card.html", include_str!("card.html")),
    ("head.html", include_str!("head.html")),
    ("tools.html", include_str!("tools.html")),
    ("proposal.html", include_str!("proposal.html")),
    ("proposal_card.html", include_str!("proposal_card.html")),
    ("foot.html", include_str!("foot.html")),
];

/// What stands above the cards.
#[derive(Serialize)]
struct Page {
    policy: String,
    version: &'static str,
    what: &'static str,
    style: &'static str,
    name: String,
    batch: String,
    simulated: bool,
    written_at: Timestamp,
    written_for_people: String,
    jobs: usize,
    finished: usize,
    spent: String,
    /// What is still to be submitted, if anything is.
    to_submit: Option<String>,
    at_risk: Option<String>,
    unknown: Option<String>,
    problems: Vec<Problem>,
    /// Whether something is still at the service.
    is_running: bool,
    states: Vec<StateBar>,
    models: Vec<ModelBar>,
    timeline: Option<Timeline>,
    tags: BTreeSet<String>,
}

/// What stands below them.
#[derive(Serialize)]
struct Foot {
    script: &'static str,
}

/// Writes a contact sheet that lies in a folder.
pub(crate) fn write(
    report: &Report,
    folder: &Path,
    written_at: Timestamp,
    commands: Option<&Commands>,
    to: &mut impl Write,
) -> io::Result<()> {
    let engine = engine().map_err(io::Error::other)?;
    let render = |name: &str, context: Value, to: &mut dyn Write| {
        let template = engine.get_template(name).map_err(io::Error::other)?;
        template.render_captured_to(context, to).map(drop).map_err(io::Error::other)
    };
    render("page.html", Serde(page(report, folder, written_at, commands)).into(), to)?;
    let mut rows = report.rows_seen_from(folder).peekable();
    while let Some(first) = rows.next() {
        // The takes of a job follow each other.
        let mut takes = vec![first];
        while let Some(next) = rows.next_if(|row: &Row| row.take > 1 && base_of(row) == base_of(&takes[0])) {
            takes.push(next);
        }
        render("group.html", Serde(Group::new(&takes, report.simulated, commands)).into(), to)?;
    }
    render("foot.html", Serde(Foot { script: SCRIPT }).into(), to)
}

pub(super) fn engine() -> Result<Environment<'static>, minijinja::Error> {
    let mut engine = Environment::new();
    for (name, source) in TEMPLATES {
        engine.add_template(name, source)?;
    }
    Ok(engine)
}

fn page(report: &Report, folder: &Path, written_at: Timestamp, commands: Option<&Commands>) -> Page {
    let totals = &report.totals;
    let mut policy = Policy::new(STYLE, SCRIPT);
    let (mut tags, mut tasks, mut models) = (BTreeSet::new(), Tasks::default(), Sums::default());
    for row in report.rows_seen_from(folder) {
        policy.allow_videos_of(row.video_url.as_deref().filter(|_| !report.simulated));
        models.add_open(&row);
        tags.extend(row.tags.iter().map(|tag| plain(tag)));
        if let Some(times) = row.detail.times {
            tasks.add(&row.id, times);
        }
    }
    report.attempts().for_each(|attempt| models.add(attempt));
    Page {
        policy: policy.to_string(),
        version: env!("CARGO_PKG_VERSION"),
        what: "contact sheet",
        style: STYLE,
        name: plain(&report.key.name),
        batch: plain(&report.key.batch),
        simulated: report.simulated,
        written_at,
        written_for_people: written_at.strftime("%-d %B %Y, %H:%M UTC").to_string(),
        jobs: totals.jobs,
        finished: totals.states.get(JobState::Completed.name()).copied().unwrap_or(0),
        spent: totals.spent_usd.to_string(),
        to_submit: (!totals.to_submit_usd.is_zero()).then(|| totals.to_submit_usd.to_string()),
        at_risk: (!totals.at_risk_usd.is_zero()).then(|| totals.at_risk_usd.to_string()),
        unknown: (!totals.unknown_usd.is_zero()).then(|| totals.unknown_usd.to_string()),
        problems: problems(report, commands),
        is_running: [JobState::Queued, JobState::InProgress]
            .iter()
            .any(|state| totals.states.get(state.name()) > Some(&0)),
        states: state_bars(totals),
        models: model_bars(&models),
        timeline: Timeline::of(tasks, written_at),
        tags,
    }
}
