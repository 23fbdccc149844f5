//! The columns of the reports for spreadsheets: each with its name, what it holds, and its width.

use std::borrow::Cow;

use jiff::Timestamp;

use super::row::{Row, moment};
use crate::domain::JobChoice;

/// The width of a column, in characters, unless it has its own.
const WIDTH: f64 = 12.0;

/// The type of a column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// Text over several lines.
    Wrapped,
    Number,
    Money,
    Time(fn(&Row) -> Option<Timestamp>),
    /// The path of a file beside the report.
    Link,
}

/// A column.
pub(super) struct Column {
    /// Its name in the first line.
    pub name: &'static str,
    /// The type of its cells.
    pub kind: Kind,
    /// Its width in a workbook, in characters.
    pub width: f64,
    /// The cell of a row as text; unknown is empty.
    pub text: for<'r> fn(&'r Row) -> Cow<'r, str>,
}

impl Column {
    const fn wide(self, width: f64) -> Self {
        Self { width, ..self }
    }
}

const fn column(name: &'static str, kind: Kind, text: for<'r> fn(&'r Row) -> Cow<'r, str>) -> Column {
    Column { name, kind, width: WIDTH, text }
}

/// The columns in their order. Behind them come one for each label, each column of a table that jobs were made of, and each axis of a
/// matrix: those of [`of_sheet`]. Users script against them: they are never renamed or moved.
pub(super) const COLUMNS: [Column; 37] = [
    column("id", Kind::Text, |row| row.id.as_str().into()).wide(24.0),
    column("batch", Kind::Text, |row| row.batch.as_str().into()),
    column("model", Kind::Text, |row| row.model.as_str().into()).wide(20.0),
    column("state", Kind::Text, |row| row.state.name().into()),
    column("charge", Kind::Text, |row| row.charge.name().into()),
    column("cost_usd", Kind::Money, |row| shown(row.cost_usd)),
    column("task_id", Kind::Text, |row| text(row.task_id.as_deref())).wide(24.0),
    column("video_url", Kind::Text, |row| text(row.video_url.as_deref())),
    column("file", Kind::Link, |row| text(row.file.as_deref())),
    column("sha256", Kind::Text, |row| text(row.sha256.as_deref())),
    column("bytes", Kind::Number, |row| shown(row.bytes)),
    column("size", Kind::Text, |row| text(row.size.as_deref())),
    column("aspect_ratio", Kind::Text, |row| text(row.aspect_ratio.as_deref())),
    column("duration_s", Kind::Number, |row| shown(row.duration_s)),
    column("take", Kind::Number, |row| row.take.to_string().into()),
    column("tags", Kind::Text, |row| row.tags.join(", ").into()),
    column("face", Kind::Text, |row| text(row.face.as_deref())),
    column("attempts", Kind::Number, |row| row.attempts.to_string().into()),
    column("polls", Kind::Number, |row| row.polls.to_string().into()),
    column("submitted_at", Kind::Time(|row| row.submitted_at), |row| shown(row.submitted_at.map(moment))).wide(20.0),
    column("completed_at", Kind::Time(|row| row.completed_at), |row| shown(row.completed_at.map(moment))).wide(20.0),
    column("generation_s", Kind::Number, |row| shown(row.generation_s)),
    column("error_code", Kind::Text, |row| text(row.error_code.as_deref())),
    column("error_message", Kind::Text, |row| {
        row.error_message.as_deref().or(row.declared.as_deref()).unwrap_or_default().into()
    })
    .wide(40.0),
    column("prompt", Kind::Wrapped, |row| text(row.prompt.as_deref())).wide(60.0),
    column("price_usd", Kind::Money, |row| row.price_usd.to_string().into()),
    column("at_risk_usd", Kind::Money, |row| row.at_risk_usd.to_string().into()),
    column("choice", Kind::Text, |row| text(row.choice.map(JobChoice::name))),
    column("reviewer", Kind::Text, |row| text(row.reviewer.as_deref())),
    column("note", Kind::Wrapped, |row| text(row.note.as_deref())).wide(40.0),
    column("delivered_s", Kind::Number, |row| shown(row.delivered.seconds)),
    column("width", Kind::Number, |row| shown(row.delivered.width)),
    column("height", Kind::Number, |row| shown(row.delivered.height)),
    column("fps", Kind::Number, |row| shown(row.delivered.fps)),
    column("audio", Kind::Text, |row| text(row.delivered.audio.map(|audio| if audio { "yes" } else { "no" }))),
    column("mismatch", Kind::Text, |row| text(row.delivered.mismatch.as_deref())).wide(40.0),
    column("reported_usd", Kind::Money, |row| shown(row.reported_usd)),
];

/// A column of the sheet that jobs were made of.
pub(super) const fn of_sheet() -> (Kind, f64) {
    (Kind::Text, WIDTH)
}

fn text(value: Option<&str>) -> Cow<'_, str> {
    value.unwrap_or_default().into()
}

fn shown(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map(|value| value.to_string().into()).unwrap_or_default()
}
