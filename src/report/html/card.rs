//! A job on the contact sheet, with its takes side by side. Control characters and direction marks of untrusted text are shown without an effect.

use std::fmt;

use askama::Template;
use askama::filters::{Escaper, Html};

use crate::domain::{JobChoice, Usd, count, is_upright, ratio_meant_by, text};
use crate::report::row::{Detail, Row, Version};
use crate::report::{JobNote, JobState, NextCommand, NoteKind};

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
    /// Its command, restricted to this job.
    command: Option<String>,
    /// The kinds of all notes, for the filters.
    notes: String,
    price: String,
    /// The requested shape; empty if it is unknown.
    shape: String,
    is_upright: bool,
    exec: Option<&'r str>,
    /// The wishes of all reviewers, if they disagree.
    conflict: Option<&'r str>,
    /// The facts of the delivered video.
    delivered: Option<String>,
    file_link: Option<String>,
    url_link: Option<&'r str>,
    /// The recorded choice.
    choice: &'static str,
    /// True if it has a video or a failed task.
    can_be_noted: bool,
}

/// Another video of a job.
struct Earlier<'r> {
    /// Its job.
    job: &'r str,
    task_id: Option<&'r str>,
    name: &'r str,
    /// "take 1 of 2".
    take: String,
    price: Usd,
    link: String,
    shape: String,
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
        let takes = (cards.len() > 1).then(|| count(cards.len(), "take"));
        let others = (!earlier.is_empty()).then(|| count(earlier.len(), "other video"));
        let text: Vec<String> = takes.into_iter().chain(others).collect();
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
            shape: shape(row),
            conflict: row.notes().iter().find(|it| it.kind == NoteKind::Conflict).and_then(|it| it.cause.as_deref()),
            // Words in place of a picture lie, so that they have room.
            is_upright: note.is_none() && is_upright(row.aspect_ratio.as_deref(), row.size.as_deref()),
            exec: row.exec.as_ref().and_then(|exec| exec.error.as_deref()),
            delivered: delivered(row),
            file_link: row.file.as_deref().map(path_as_link),
            url_link: url.and_then(web_link),
            choice: row.choice.map_or("", JobChoice::name),
            can_be_noted: note.is_none() || row.state == JobState::Failed && row.task_id.is_some(),
        }
    }
}

/// The command of a note, restricted to this job.
fn command(note: &JobNote, row: &Row, commands: &NextCommand) -> Option<String> {
    // What is in doubt is resolved by a list, which the page has once.
    let (name, options) = note.kind.command().filter(|(name, _)| *name != "resolve")?;
    let select: &[&str] = if name == "run" { &["--select", &row.id] } else { &[] };
    Some(commands.command(name, &[select, options].concat()))
}

impl<'r> Earlier<'r> {
    fn new(Version { file: path, task_id, nth: (number, all), price }: &'r Version, row: &'r Row) -> Self {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_upright = is_upright(row.aspect_ratio.as_deref(), row.size.as_deref());
        let (link, shape) = (path_as_link(path), shape(row));
        let take = format!("take {number} of {all}");
        Self { job: &row.id, task_id: task_id.as_deref(), name, take, price: *price, link, shape, is_upright }
    }
}

/// The requested shape: `16:9` also for a size that has it, and any other size in pixels.
fn shape(row: &Row) -> String {
    let written = row.size.as_deref().or(row.aspect_ratio.as_deref()).unwrap_or_default();
    ratio_meant_by(written).map_or_else(|| written.to_owned(), |(wide, high)| format!("{wide}:{high}"))
}

/// The facts of the delivered video, as text.
fn delivered(row: &Row) -> Option<String> {
    let size = row.delivered.width.zip(row.delivered.height).map(|(width, height)| format!("{width}x{height}"));
    let sound = row.delivered.audio.map(|audio| if audio { "sound" } else { "no sound" }.to_owned());
    let facts = [
        row.delivered.seconds.map(|seconds| format!("{seconds:.1} s")),
        size,
        row.delivered.fps.map(|fps| format!("{fps:.0} fps")),
        sound,
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    (!facts.is_empty()).then(|| facts.join(", "))
}

/// The cost of the job: spent, at risk, and unknown, without zeros.
fn price(row: &Row) -> String {
    let Detail { spent, unknown, .. } = row.detail;
    let to_submit = if row.state.is_unbought() { row.price_usd } else { Usd::ZERO };
    let words = [(spent, "spent"), (row.at_risk_usd, "at risk"), (unknown, "unknown"), (to_submit, "to submit")];
    let said: Vec<String> =
        words.iter().filter(|(usd, _)| !usd.is_zero()).map(|(usd, word)| format!("{usd:#} {word}")).collect();
    match said.as_slice() {
        [] => format!("{:#} not charged", row.price_usd),
        [_] if !spent.is_zero() && row.attempts > 1 => format!("{spent:#} in {} attempts", row.attempts),
        [_] if !spent.is_zero() => format!("{spent:#}"),
        _ => said.join(", "),
    }
}

/// The escaper of all templates. It also removes control characters.
#[derive(Clone, Copy)]
pub(super) struct Shown;

impl Escaper for Shown {
    fn write_escaped_str<W: fmt::Write>(&self, to: W, text: &str) -> fmt::Result {
        Html.write_escaped_str(to, &text::lines(text))
    }
}

/// A path as a URL: all characters but letters, digits, and `-._~/` are escaped. A path on another drive of Windows is a `file:` URL.
pub(in crate::report) fn path_as_link(path: &str) -> String {
    let has_drive = path.starts_with(|c: char| c.is_ascii_alphabetic()) && path.get(1..3) == Some(":/");
    let (root, path) = if has_drive { (format!("file:///{}", &path[..2]), &path[2..]) } else { (String::new(), path) };
    root + &text::percent_encoded(path, b"-._~/")
}

/// A URL for a link on the page: only HTTP and HTTPS.
pub(super) fn web_link(url: &str) -> Option<&str> {
    let is_web = ["https://", "http://"].iter().any(|scheme| url.to_ascii_lowercase().starts_with(scheme));
    (is_web && !url.chars().any(|c| c.is_control() || c.is_whitespace())).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_text_stays() {
        let shown = |text: &str| {
            let mut shown = String::new();
            Shown.write_escaped_str(&mut shown, text).map(|()| shown).expect("a string")
        };
        assert_eq!(
            shown("a\u{0}b\u{1b}[31mc\u{202e}d\u{2066}e\nf\tg"),
            "a\u{fffd}b\u{fffd}[31mc\u{fffd}d\u{fffd}e\nf\tg"
        );
        for text in ["שלום \u{200f}!", "مرحبا", "Zoë 🎬"] {
            assert_eq!(shown(text), text);
        }
        assert_eq!(shown("<script>"), "&#60;script&#62;");
    }

    #[test]
    fn file_name_is_never_a_url() {
        for (path, link) in [
            ("a/b c.mp4", "a/b%20c.mp4"),
            ("100%.mp4", "100%25.mp4"),
            ("a#b?c.mp4", "a%23b%3Fc.mp4"),
            ("javascript:alert(1)", "javascript%3Aalert%281%29"),
            ("ü.mp4", "%C3%BC.mp4"),
            ("../x/a~1.mp4", "../x/a~1.mp4"),
            ("D:/my videos/a.mp4", "file:///D:/my%20videos/a.mp4"),
            ("data:/x", "data%3A/x"),
        ] {
            assert_eq!(path_as_link(path), link);
        }
        for bad in
            ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "https://x/\u{0}", "https://x/ a", "//x"]
        {
            assert_eq!(web_link(bad), None, "{bad}");
        }
        assert_eq!(web_link("HTTPS://v.example/a.mp4?x=1"), Some("HTTPS://v.example/a.mp4?x=1"));
    }
}
