//! One job on the contact sheet, and several takes of one side by side.

use jiff::Timestamp;
use serde::Serialize;

use super::problems::{EXEC, UNSENT};
use super::standing::Standing;
use super::text::{path_as_link, plain, span, web_link};
use crate::domain::{Usd, is_upright};
use crate::report::Commands;
use crate::report::row::{Detail, ExecOutcome, JobState, Row};

/// The takes of one job, in their order.
#[derive(Serialize)]
pub(super) struct Group {
    id: String,
    cards: Vec<Card>,
    /// Videos of earlier attempts that are still here.
    earlier: Vec<Earlier>,
    /// What it is, where it is more than one card.
    told: Option<String>,
}

/// A card, in words.
#[derive(Serialize)]
struct Card {
    id: String,
    state: &'static str,
    label: String,
    standing: Option<Standing>,
    model: String,
    price: String,
    duration: Option<i64>,
    shape: Option<String>,
    is_upright: bool,
    take: u32,
    face: Option<String>,
    tags: Vec<String>,
    labels: Vec<String>,
    declared: Option<String>,
    exec: Option<String>,
    /// What else it is shown for than its state.
    also: Option<&'static str>,
    tag_list: String,
    took: Option<String>,
    completed_at: Option<Timestamp>,
    attempts: usize,
    prompt: Option<String>,
    task: Option<String>,
    file: Option<String>,
    file_link: Option<String>,
    poster: Option<String>,
    url_link: Option<String>,
}

/// An earlier video of a job.
#[derive(Serialize)]
struct Earlier {
    name: String,
    link: String,
    is_upright: bool,
}

/// The id without the number of the take.
pub(super) fn base_of(row: &Row) -> &str {
    let number = format!(".{}", row.take);
    if row.take > 1 { row.id.strip_suffix(&number).unwrap_or(&row.id) } else { &row.id }
}

impl Group {
    /// Of the rows of all takes of one job.
    pub(super) fn new(rows: &[Row], is_simulated: bool, commands: Option<&Commands>) -> Self {
        let id = rows.first().map(base_of).unwrap_or_default().to_owned();
        let cards: Vec<Card> = rows.iter().map(|row| Card::new(row, is_simulated, commands)).collect();
        let earlier = rows.iter().flat_map(|row| row.detail.versions.iter().map(|path| Earlier::new(path, row)));
        let earlier: Vec<Earlier> = earlier.collect();
        let counted = |count: usize, one: &str, more: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {more}")),
        };
        let takes = if cards.len() > 1 { counted(cards.len(), "take", "takes") } else { None };
        let told: Vec<String> =
            [takes, counted(earlier.len(), "earlier video", "earlier videos")].into_iter().flatten().collect();
        let told = (!told.is_empty()).then(|| told.join(", "));
        Self { id, cards, earlier, told }
    }
}

impl Card {
    fn new(row: &Row, is_simulated: bool, commands: Option<&Commands>) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(plain);
        let tags: Vec<String> = row.tags.iter().map(|tag| plain(tag)).collect();
        // What a simulator gave led to this machine, and leads nowhere by now.
        let url = row.video_url.as_deref().filter(|_| !is_simulated);
        Self {
            id: row.id.clone(),
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
            labels: row.labels.iter().map(|(name, value)| plain(&format!("{name} {value}"))).collect(),
            declared: row.declared.clone(),
            also: also(row),
            exec: row.exec.as_ref().and_then(|exec| exec.error.as_deref()).map(plain),
            took: row.generation_s.map(|took| took_text(row.state, took)),
            completed_at: row.completed_at,
            attempts: row.attempts,
            prompt: text(&row.prompt),
            task: text(&row.task_id),
            file: text(&row.file),
            file_link: row.file.as_deref().map(path_as_link),
            poster: row.detail.poster.as_deref().map(path_as_link),
            url_link: url.and_then(web_link).map(str::to_owned),
        }
    }
}

/// What a card is shown for besides its state.
fn also(row: &Row) -> Option<&'static str> {
    if row.exec.as_ref().is_some_and(|exec| exec.outcome != ExecOutcome::Done) {
        return Some(EXEC);
    }
    (row.state == JobState::Pending && row.error_message.is_some()).then_some(UNSENT)
}

impl Earlier {
    fn new(path: &str, row: &Row) -> Self {
        let name = plain(path.rsplit('/').next().unwrap_or(path));
        let is_upright = is_upright(row.aspect_ratio.as_deref(), row.size.as_deref());
        Self { name, link: path_as_link(path), is_upright }
    }
}

fn took_text(state: JobState, took: f64) -> String {
    let what = if state == JobState::Completed { "made in" } else { "ended after" };
    format!("{what} {}", span(took))
}

/// What the job cost in each of the words for money that says something of it.
fn price(row: &Row) -> String {
    let Detail { spent, unknown, .. } = row.detail;
    let to_submit = if row.state.is_unbought() { row.price_usd } else { Usd::ZERO };
    let words = [(spent, "spent"), (row.at_risk_usd, "at risk"), (unknown, "unknown"), (to_submit, "to submit")];
    let said: Vec<String> =
        words.iter().filter(|(usd, _)| !usd.is_zero()).map(|(usd, word)| format!("${usd} {word}")).collect();
    if said.is_empty() { format!("${} not charged", row.price_usd) } else { said.join(", ") }
}
