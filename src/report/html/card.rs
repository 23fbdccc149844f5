//! One job on the contact sheet.

use serde::Serialize;

use super::text::{path_as_link, plain, span, web_link};
use crate::domain::Usd;
use crate::report::row::{Detail, JobState, Row};

/// A card, in words.
#[derive(Serialize)]
pub(super) struct Card {
    id: String,
    state: &'static str,
    label: String,
    is_completed: bool,
    model: String,
    price: String,
    duration: Option<i64>,
    shape: Option<String>,
    take: u32,
    face: Option<String>,
    tags: Vec<String>,
    labels: Vec<String>,
    declared: Option<String>,
    tag_list: String,
    took: Option<String>,
    attempts: usize,
    prompt: Option<String>,
    error: Option<String>,
    task: Option<String>,
    file: Option<String>,
    file_link: Option<String>,
    url_link: Option<String>,
    versions: Vec<Version>,
}

/// An earlier video of the job.
#[derive(Serialize)]
struct Version {
    name: String,
    link: String,
}

impl Card {
    /// The card of a row.
    pub(super) fn new(row: &Row) -> Self {
        let text = |text: &Option<String>| text.as_deref().map(plain);
        let tags: Vec<String> = row.tags.iter().map(|tag| plain(tag)).collect();
        Self {
            id: row.id.clone(),
            state: row.state.name(),
            label: row.state.label(),
            is_completed: row.state == JobState::Completed,
            model: plain(&row.model),
            price: price(row),
            duration: row.duration_s,
            shape: text(&row.size).or_else(|| text(&row.aspect_ratio)),
            take: row.take,
            face: text(&row.face),
            tag_list: tags.join("\n"),
            tags,
            labels: row.labels.iter().map(|(name, value)| plain(&format!("{name} {value}"))).collect(),
            declared: row.declared.clone(),
            took: row.generation_s.map(|took| took_text(row.state, took)),
            attempts: row.attempts,
            prompt: text(&row.prompt),
            error: error(row),
            task: text(&row.task_id),
            file: text(&row.file),
            file_link: row.file.as_deref().map(path_as_link),
            url_link: row.video_url.as_deref().and_then(web_link).map(str::to_owned),
            versions: row.detail.versions.iter().map(|path| version(path)).collect(),
        }
    }
}

fn took_text(state: JobState, took: f64) -> String {
    let what = if state == JobState::Completed { "made in" } else { "ended after" };
    format!("{what} {}", span(took))
}

fn version(path: &str) -> Version {
    Version { name: plain(path.rsplit('/').next().unwrap_or(path)), link: path_as_link(path) }
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

/// What went wrong, with the service's code.
fn error(row: &Row) -> Option<String> {
    let message = row.error_message.as_deref().map(plain)?;
    Some(row.error_code.as_deref().map_or_else(|| message.clone(), |code| format!("{message} ({})", plain(code))))
}
