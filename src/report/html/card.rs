//! One job on the contact sheet, and several takes of one side by side.

use std::borrow::Cow;

use askama::Template;
use jiff::Timestamp;

use super::problems::{DIFFERS, EXEC, UNSENT};
use super::standing::Standing;
use super::text::{path_as_link, plain, span, web_link};
use crate::domain::{JobChoice, Usd, is_upright};
use crate::report::Commands;
use crate::report::row::{Detail, ExecOutcome, JobState, Row, Version};

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
    id: &'r str,
    state: &'static str,
    label: String,
    standing: Option<Standing>,
    model: Cow<'r, str>,
    price: String,
    duration: Option<i64>,
    shape: Option<Cow<'r, str>>,
    is_upright: bool,
    take: u32,
    face: Option<Cow<'r, str>>,
    tags: Vec<Cow<'r, str>>,
    labels: Vec<String>,
    declared: Option<&'r str>,
    exec: Option<Cow<'r, str>>,
    differs: Option<&'r str>,
    /// The facts of the delivered video.
    delivered: Option<String>,
    /// The second reason to show it, besides its state.
    also: Option<&'static str>,
    tag_list: String,
    took: Option<String>,
    completed_at: Option<Timestamp>,
    attempts: usize,
    prompt: Option<Cow<'r, str>>,
    task: Option<Cow<'r, str>>,
    /// The same as the service wrote it: what is chosen is chosen of its video.
    task_id: Option<&'r str>,
    file: Option<Cow<'r, str>>,
    file_link: Option<String>,
    poster: Option<String>,
    url_link: Option<&'r str>,
    /// The recorded choice, and its reviewers and notes.
    choice: &'static str,
    reviewer: Option<Cow<'r, str>>,
    note: Option<Cow<'r, str>>,
}

/// Another video of a job.
struct Earlier<'r> {
    /// Its job.
    job: &'r str,
    task_id: Option<&'r str>,
    name: Cow<'r, str>,
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
    pub(super) fn new(rows: &'r [Row], is_simulated: bool, commands: Option<&Commands>) -> Self {
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
    fn new(row: &'r Row, is_simulated: bool, commands: Option<&Commands>) -> Self {
        let text = |text: &'r Option<String>| text.as_deref().map(plain);
        let tags: Vec<Cow<'_, str>> = row.tags.iter().map(|tag| plain(tag)).collect();
        // The simulator's URL led to this machine, and leads nowhere now.
        let url = row.video_url.as_deref().filter(|_| !is_simulated);
        Self {
            id: &row.id,
            state: row.state.name(),
            label: row.state.label(),
            standing: Standing::of(row, commands),
            model: plain(&row.model),
            price: price(row),
            duration: row.duration_s,
            shape: text(&row.size).or_else(|| text(&row.aspect_ratio)),
            is_upright: is_upright(row.aspect_ratio.as_deref(), row.size.as_deref()),
            take: row.take,
            face: text(&row.face),
            tag_list: tags.join("\n"),
            tags,
            labels: row.labels.iter().map(|(name, value)| plain(&format!("{name} {value}")).into_owned()).collect(),
            declared: row.declared.as_deref(),
            also: also(row),
            differs: row.delivered.differs.as_deref(),
            delivered: delivered(row),
            exec: row.exec.as_ref().and_then(|exec| exec.error.as_deref()).map(plain),
            took: row.generation_s.map(|took| took_text(row.state, took)),
            completed_at: row.completed_at,
            attempts: row.attempts,
            prompt: text(&row.prompt),
            task: text(&row.task_id),
            task_id: row.task_id.as_deref(),
            file: text(&row.file),
            file_link: row.file.as_deref().map(path_as_link),
            poster: row.detail.poster.as_deref().map(path_as_link),
            url_link: url.and_then(web_link),
            choice: row.choice.map_or("", JobChoice::name),
            reviewer: text(&row.reviewer),
            note: text(&row.note),
        }
    }
}

/// The reason to show a card besides its state.
fn also(row: &Row) -> Option<&'static str> {
    if row.exec.as_ref().is_some_and(|exec| exec.outcome != ExecOutcome::Done) {
        return Some(EXEC);
    }
    if row.delivered.differs.is_some() {
        return Some(DIFFERS);
    }
    (row.state == JobState::Pending && row.error_message.is_some()).then_some(UNSENT)
}

impl<'r> Earlier<'r> {
    fn new(Version { file: path, task_id }: &'r Version, row: &'r Row) -> Self {
        let name = plain(path.rsplit('/').next().unwrap_or(path));
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
        row.delivered.codecs.as_ref().map(|codecs| plain(&codecs.join(" ")).into_owned()),
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

/// The cost of the job: spent, at risk, and unknown, where they are not zero.
fn price(row: &Row) -> String {
    let Detail { spent, unknown, .. } = row.detail;
    let to_submit = if row.state.is_unbought() { row.price_usd } else { Usd::ZERO };
    let words = [(spent, "spent"), (row.at_risk_usd, "at risk"), (unknown, "unknown"), (to_submit, "to submit")];
    let said: Vec<String> =
        words.iter().filter(|(usd, _)| !usd.is_zero()).map(|(usd, word)| format!("${usd} {word}")).collect();
    if said.is_empty() { format!("${} not charged", row.price_usd) } else { said.join(", ") }
}
