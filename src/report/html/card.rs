//! A job on the contact sheet, with its takes side by side.

use askama::Template;

use super::text::{path_as_link, span, web_link};
use crate::domain::{JobChoice, Usd, is_upright};
use crate::report::found::JobState;
use crate::report::row::{Detail, Row, Version};
use crate::report::{JobNote, NextCommand};

/// The takes of one job, in their order.
#[derive(Template)]
#[template(path = "group.html")]
pub(super) struct Group<'r> {
    id: &'r str,
    cards: Vec<Card<'r>>,
    /// Videos of other attempts that are still here.
    earlier: Vec<Earlier<'r>>,
    /// The name of one of several cards.
    text: Option<String>,
}

/// A card, in words.
#[derive(Template)]
#[template(path = "card.html")]
struct Card<'r> {
    row: &'r Row,
    /// The note in place of a video.
    note: Option<&'r JobNote>,
    /// The command that it names.
    command: Option<String>,
    /// The kinds of all notes, by which the page filters.
    notes: String,
    price: String,
    is_upright: bool,
    exec: Option<&'r str>,
    /// The facts of the delivered video.
    delivered: Option<String>,
    took: Option<String>,
    file_link: Option<String>,
    poster: Option<String>,
    url_link: Option<&'r str>,
    /// The recorded choice.
    choice: &'static str,
}

/// Another video of a job.
struct Earlier<'r> {
    /// Its job.
    job: &'r str,
    task_id: Option<&'r str>,
    name: &'r str,
    link: String,
    is_upright: bool,
}

/// The id without the number of the take.
pub(super) fn base_of(row: &Row) -> &str {
    let number = format!(".{}", row.take);
    if row.take > 1 { row.id.strip_suffix(&number).unwrap_or(&row.id) } else { &row.id }
}

impl<'r> Group<'r> {
    /// Of the rows of all takes of one job.
    pub(super) fn new(rows: &'r [Row], is_simulated: bool, commands: Option<&NextCommand>) -> Self {
        let id = rows.first().map(base_of).unwrap_or_default();
        let cards: Vec<Card> = rows.iter().map(|row| Card::new(row, is_simulated, commands)).collect();
        let earlier = rows.iter().flat_map(|row| row.detail.versions.iter().map(|version| Earlier::new(version, row)));
        let earlier: Vec<Earlier> = earlier.collect();
        let counted = |count: usize, one: &str, more: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {more}")),
        };
        let takes = if cards.len() > 1 { counted(cards.len(), "take", "takes") } else { None };
        let text: Vec<String> =
            [takes, counted(earlier.len(), "other video", "other videos")].into_iter().flatten().collect();
        let text = (!text.is_empty()).then(|| text.join(", "));
        Self { id, cards, earlier, text }
    }
}

impl<'r> Card<'r> {
    fn new(row: &'r Row, is_simulated: bool, commands: Option<&NextCommand>) -> Self {
        // The simulator's URL has ended with the simulator.
        let note = row.notes().iter().find(|note| note.kind.is_without_video());
        let url = row.video_url.as_deref().filter(|_| !is_simulated);
        Self {
            row,
            note,
            command: note.zip(commands).and_then(|(note, commands)| command(note, row, commands)),
            notes: row.notes().iter().map(|note| note.kind.name()).collect::<Vec<_>>().join(" "),
            price: price(row),
            is_upright: is_upright(row.aspect_ratio.as_deref(), row.size.as_deref()),
            exec: row.exec.as_ref().and_then(|exec| exec.error.as_deref()),
            delivered: delivered(row),
            took: row.generation_s.map(|took| took_text(row.state, took)),
            file_link: row.file.as_deref().map(path_as_link),
            poster: row.detail.poster.as_deref().map(path_as_link),
            url_link: url.and_then(web_link),
            choice: row.choice.map_or("", JobChoice::name),
        }
    }
}

/// The command that helps this job alone.
fn command(note: &JobNote, row: &Row, commands: &NextCommand) -> Option<String> {
    let (name, options) = note.kind.command()?;
    let select: &[&str] = if name == "run" { &["--select", &row.id] } else { &[] };
    Some(commands.command(name, &[select, options].concat()))
}

impl<'r> Earlier<'r> {
    fn new(Version { file: path, task_id }: &'r Version, row: &'r Row) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_upright = is_upright(row.aspect_ratio.as_deref(), row.size.as_deref());
        Self { job: &row.id, task_id: task_id.as_deref(), name, link: path_as_link(path), is_upright }
    }
}

/// The facts of the delivered video, as text.
fn delivered(row: &Row) -> Option<String> {
    let size = row.delivered.width.zip(row.delivered.height).map(|(width, height)| format!("{width}x{height}"));
    let sound = row.delivered.audio.map(|audio| if audio { "sound" } else { "no sound" }.to_owned());
    let credentials = row.delivered.content_credentials.filter(|has| *has).map(|_| "content credentials".to_owned());
    let facts = [
        row.delivered.seconds.map(|seconds| format!("{seconds:.1} s")),
        size,
        row.delivered.fps.map(|fps| format!("{fps:.0} fps")),
        row.delivered.codecs.as_ref().map(|codecs| codecs.join(" ")),
        sound,
        credentials,
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

fn took_text(state: JobState, took: f64) -> String {
    let what = if state == JobState::Completed { "made in" } else { "ended after" };
    format!("{what} {}", span(took))
}

/// The cost of the job: spent, at risk, and unknown, without zeros.
fn price(row: &Row) -> String {
    let Detail { spent, unknown, .. } = row.detail;
    let to_submit = if row.state.is_unbought() { row.price_usd } else { Usd::ZERO };
    let words = [(spent, "spent"), (row.at_risk_usd, "at risk"), (unknown, "unknown"), (to_submit, "to submit")];
    let said: Vec<String> =
        words.iter().filter(|(usd, _)| !usd.is_zero()).map(|(usd, word)| format!("${usd} {word}")).collect();
    if said.is_empty() { format!("${} not charged", row.price_usd) } else { said.join(", ") }
}
