//! The model of a report for all formats. It is stable for scripts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::earlier::ReportedPurchase;
use super::found::JobState;
use super::job_note::JobNote;
use crate::domain::{Cells, Charge, Executed, JobChoice, Labels, Usd};

/// One job of the manifest. An unknown value is absent, never zero.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The job ID.
    pub id: String,
    /// The batch value; empty without one.
    pub batch: String,
    /// The model.
    pub model: String,
    /// The state of the job.
    pub state: JobState,
    /// The charge for all attempts of this job in this batch.
    pub charge: Charge,
    /// The cost of all attempts of this job in this batch, in USD; null if a charge is unknown.
    pub cost_usd: Option<Usd>,
    /// The task ID.
    pub task_id: Option<String>,
    /// The service's URL of the video.
    pub video_url: Option<String>,
    /// The path of the video if it is there, relative to the directory of this report.
    pub file: Option<String>,
    /// SHA-256 of the file.
    pub sha256: Option<String>,
    /// Length of the file.
    pub bytes: Option<u64>,
    /// Requested size.
    pub size: Option<String>,
    /// Requested aspect ratio.
    pub aspect_ratio: Option<String>,
    /// Requested seconds.
    pub duration_s: Option<i64>,
    /// The number of the take of the same request, from 1.
    pub take: u32,
    /// The tags.
    pub tags: Vec<String>,
    /// The labels.
    #[schemars(with = "BTreeMap<String, String>")]
    pub labels: Labels,
    /// The face, for face videos.
    pub face: Option<String>,
    /// The number of submissions that may have made a task.
    pub attempts: usize,
    /// The number of polls.
    pub polls: u32,
    /// The progress in percent: 0 in the queue, 100 when completed, and unknown between.
    pub progress: Option<u8>,
    /// The time of the acceptance, to the millisecond; for a job in doubt, the earliest time of its request.
    #[schemars(with = "Option<String>")]
    #[serde(serialize_with = "as_moment")]
    pub submitted_at: Option<Timestamp>,
    /// The time of completion, to the millisecond.
    #[schemars(with = "Option<String>")]
    #[serde(serialize_with = "as_moment")]
    pub completed_at: Option<Timestamp>,
    /// Seconds from acceptance to the end of generation.
    pub generation_s: Option<f64>,
    /// The service's code.
    pub error_code: Option<String>,
    /// The message of the service or of shotlist.
    pub error_message: Option<String>,
    /// The raw error of the service.
    pub error: Option<serde_json::Value>,
    /// The table row of the job.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub row: Option<Arc<Cells>>,
    /// Its matrix values.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub matrix: Option<Arc<Labels>>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The current price of the job.
    pub price_usd: Usd,
    /// The possible charge of submissions without a response.
    pub at_risk_usd: Usd,
    /// The cost of the task in the service's responses. It proves no charge.
    pub reported_usd: Option<Usd>,
    /// The combined choice of all reviewers of its takes.
    pub choice: Option<JobChoice>,
    /// The reviewers.
    pub reviewer: Option<String>,
    /// Their notes, one per line; with the reviewer, if there are several.
    pub note: Option<String>,
    /// The facts of the delivered video.
    #[serde(flatten)]
    pub delivered: Delivered,
    /// The user's declaration about its last submission, as text.
    pub declared: Option<String>,
    /// The time at which the video was archived, to the millisecond.
    #[schemars(with = "Option<String>")]
    #[serde(serialize_with = "as_moment")]
    pub archived_at: Option<Timestamp>,
    /// The outcome of the program for the video.
    pub exec: Option<Exec>,
    /// The machine that downloaded the video, in a shared ledger. The file is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The submission behind the state above, if it may have been charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purchase: Option<Box<ReportedPurchase>>,
    /// Facts for the contact sheet.
    #[serde(skip)]
    pub(super) detail: Detail,
}

impl Row {
    /// The notes of the job, the most urgent first.
    pub fn notes(&self) -> &[JobNote] {
        &self.detail.notes
    }
}

/// The facts of a delivered video.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Delivered {
    /// The duration of the delivered video in seconds.
    #[serde(rename = "delivered_s")]
    pub seconds: Option<f64>,
    /// Its displayed width in pixels.
    pub width: Option<u32>,
    /// Its displayed height in pixels.
    pub height: Option<u32>,
    /// Its frames a second.
    pub fps: Option<f64>,
    /// True if it has sound.
    pub audio: Option<bool>,
    /// Its differences from the request: duration, shape, or lines.
    pub mismatch: Option<String>,
}

/// The outcome of the program for a video.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Exec {
    /// The outcome.
    pub outcome: ExecOutcome,
    /// The reason why it counts as failed.
    pub error: Option<String>,
    /// The last line of its output.
    pub line: Option<String>,
    /// The time of its end, to the millisecond.
    #[schemars(with = "String")]
    pub at: String,
}

/// The outcome of a program, if it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecOutcome {
    /// It succeeded.
    Done,
    /// It failed: the next run with `--exec` starts it again.
    Failed,
    /// It was not started or not finished: the next run with `--exec` starts it.
    Owed,
}

impl From<&Executed> for Exec {
    fn from(executed: &Executed) -> Self {
        let Executed { at, error, line } = executed;
        let outcome = match error {
            None => ExecOutcome::Done,
            Some(_) if executed.is_owed() => ExecOutcome::Owed,
            Some(_) => ExecOutcome::Failed,
        };
        Self { outcome, error: error.clone(), line: line.clone(), at: moment(*at) }
    }
}

/// A time in a report, always with milliseconds: readers of tables derive the type from the first row.
pub(super) fn moment(time: Timestamp) -> String {
    format!("{time:.3}")
}

#[expect(clippy::ref_option, reason = "serde hands it over so")]
fn as_moment<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    time.map(moment).serialize(serializer)
}

/// Facts for the contact sheet.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Detail {
    /// The notes, the most urgent first.
    pub notes: Vec<JobNote>,
    /// The certain cost of all attempts, and the unknown cost without that of doubts.
    pub spent: Usd,
    pub unknown: Usd,
    /// The present videos of its other attempts.
    pub versions: Vec<Version>,
}

/// The video of another attempt of a job.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Version {
    pub file: String,
    /// Its task, if it is a take of the current request: it can be kept.
    pub task_id: Option<String>,
    /// Its number among the videos of the job, oldest first, and how many these are.
    pub nth: (usize, usize),
    /// Its price.
    pub price: Usd,
}

/// Sums over the batch.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, JsonSchema)]
pub struct Totals {
    /// Jobs of the manifest.
    pub jobs: usize,
    /// The price of all jobs of the manifest, once each.
    pub planned_usd: Usd,
    /// The price of pending and rejected jobs.
    pub to_submit_usd: Usd,
    /// The price of held jobs, which wait for a face review.
    pub held_usd: Usd,
    /// The certain charges of this batch, including changed and removed jobs.
    pub spent_usd: Usd,
    /// The price of all attempts in doubt, which may be charged.
    pub at_risk_usd: Usd,
    /// The price of all uncompleted tasks with an undocumented charge.
    pub unknown_usd: Usd,
    /// The fees of approved face reviews in the manifest, once per face. They are not paid through the interface.
    pub face_reviews_usd: Usd,
    /// Jobs by state, with all states.
    pub states: BTreeMap<&'static str, usize>,
    /// Jobs with a video on this machine.
    pub videos: usize,
    /// Jobs with an archived video outside the output directory.
    pub archived: usize,
    /// Jobs by combined choice, with all choices.
    pub choices: BTreeMap<&'static str, usize>,
    /// Jobs with a failed `--exec`.
    pub exec_failed: usize,
    /// Jobs with an `--exec` that was not started or not finished.
    pub exec_owed: usize,
    /// Videos of the batch with a mismatch.
    pub mismatched: usize,
    /// The price of those videos.
    pub mismatched_usd: Usd,
}

/// A task without a row that may be charged: its job was changed, retaken, or removed since.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Superseded {
    /// Its job.
    pub job: String,
    /// The state.
    pub state: JobState,
    /// The charge.
    pub charge: Charge,
    /// Its price.
    pub price_usd: Usd,
    /// The task ID.
    pub task_id: Option<String>,
    /// The URL of its video.
    pub video_url: Option<String>,
    /// The path of its video if it is there, relative to the directory of this report.
    pub file: Option<String>,
    /// The submission.
    pub purchase: ReportedPurchase,
}

/// The default width of a column, in characters.
pub(super) const WIDTH: f64 = 12.0;

/// The type of a column.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Text,
    /// Text over several lines.
    Wrapped,
    Number,
    Money,
    Time(fn(&Row) -> Option<Timestamp>),
    /// The path of a file, relative to the report.
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

/// The columns in their order. Columns for labels, table columns, and matrix axes follow. Scripts depend on them: they are never renamed
/// or moved.
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

fn text(value: Option<&str>) -> Cow<'_, str> {
    value.unwrap_or_default().into()
}

fn shown(value: Option<impl ToString>) -> Cow<'static, str> {
    value.map(|value| value.to_string().into()).unwrap_or_default()
}
