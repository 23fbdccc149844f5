//! The one model of a report, frozen: what is in every form of it.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;

use super::times::Times;
use super::way::way;
use crate::domain::{Attempt, AttemptId, AttemptState, BatchKey, Charge, History, Job, Usd, VideoFile};
use crate::download::is_whole;

/// Where a job stands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// The service's final word: there is a video.
    Completed,
    /// Being generated when the run stopped.
    InProgress,
    /// Waiting at the service when the run stopped.
    Queued,
    /// Never sent.
    Pending,
    /// Waits for a face review.
    Held,
    /// Refused by the service; no task exists.
    Rejected,
    /// The service's final word: there is no video.
    Failed,
    /// Sent, and the answer never arrived whole.
    InDoubt,
}

impl JobState {
    /// Every state, the good ones first.
    pub const ALL: [Self; 8] = [
        Self::Completed,
        Self::InProgress,
        Self::Queued,
        Self::Pending,
        Self::Held,
        Self::Rejected,
        Self::Failed,
        Self::InDoubt,
    ];

    /// The state's name in every form of a report.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::InProgress => "in_progress",
            Self::Queued => "queued",
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
            Self::InDoubt => "in_doubt",
        }
    }

    /// The state's name for a person.
    #[must_use]
    pub fn label(self) -> String {
        self.name().replace('_', " ")
    }
}

/// One job of the manifest. An unknown value is absent, never zero.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Row {
    /// The job's name.
    pub id: String,
    /// The batch value; empty where the manifest has none.
    pub batch: String,
    /// The model.
    pub model: String,
    /// Where the job stands.
    pub state: JobState,
    /// What is known of the money for all attempts of this job in this batch.
    pub charge: Charge,
    /// What all attempts of this job in this batch cost, in dollars; null while any of them is unknown.
    pub cost_usd: Option<Usd>,
    /// The service's name for the task.
    pub task_id: Option<String>,
    /// Where the video can be fetched, as the service said.
    pub video_url: Option<String>,
    /// The video's file while it is there, relative to this report's folder.
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
    /// Which generation of the same request this is, from 1.
    pub take: u32,
    /// Labels.
    pub tags: Vec<String>,
    /// The face, for face videos.
    pub face: Option<String>,
    /// How often the job was submitted, without submissions that made certain no task.
    pub attempts: usize,
    /// How often the service was asked about the task.
    pub polls: u32,
    /// When the service accepted the task.
    #[schemars(with = "Option<String>")]
    pub submitted_at: Option<Timestamp>,
    /// When the video was finished.
    #[schemars(with = "Option<String>")]
    pub completed_at: Option<Timestamp>,
    /// Seconds from acceptance to the end of generation.
    pub generation_s: Option<f64>,
    /// The service's code.
    pub error_code: Option<String>,
    /// The service's message, or what happened.
    pub error_message: Option<String>,
    /// The service's error as it came.
    pub error: Option<serde_json::Value>,
    /// The prompt that was sent.
    pub prompt: Option<String>,
    /// What only a page for people shows.
    #[serde(skip)]
    pub(super) detail: Detail,
}

/// What only a page for people shows.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Detail {
    /// What one attempt costs.
    pub price: Usd,
    /// What is known of the money for the attempt that the row stands for.
    pub charge: Charge,
    /// When what happened to it.
    pub times: Option<Times>,
    /// The videos of earlier attempts that are still here.
    pub versions: Vec<String>,
}

/// Sums over the batch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Totals {
    /// Jobs of the manifest.
    pub jobs: usize,
    /// What the jobs of the manifest cost together, each taken once.
    pub planned_usd: Usd,
    /// Certainly charged for this batch, with attempts of jobs that were changed or removed since.
    pub spent_usd: Usd,
    /// May have been charged on top of that: the price of every attempt in doubt.
    pub at_risk_usd: Usd,
    /// May have been charged, too: the price of every task of which nobody documents when it is charged, and that is not
    /// completed.
    pub unknown_usd: Usd,
    /// Jobs by state; every state is there.
    pub states: BTreeMap<&'static str, usize>,
    /// Jobs whose video is on this machine.
    pub videos: usize,
}

/// A task that was paid for, or perhaps, and that no row stands for: its job was changed, taken again or removed since.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Superseded {
    /// The job that it was for.
    pub job: String,
    /// Where it stands.
    pub state: JobState,
    /// What is known of the money.
    pub charge: Charge,
    /// Its price.
    pub price_usd: Usd,
    /// The service's name for it.
    pub task_id: Option<String>,
    /// Where its video can be fetched.
    pub video_url: Option<String>,
    /// Its video's file while it is there, relative to this report's folder.
    pub file: Option<String>,
    /// The exact request.
    #[schemars(with = "serde_json::Value")]
    pub request: serde_json::Value,
}

/// A report before it has a form. Its rows are made when they are written: ten thousand at once would take more memory than
/// the run itself.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the jobs belong to.
    pub key: BatchKey,
    /// Whether the simulator played the service, so that nothing real was made or paid.
    pub simulated: bool,
    /// Tasks that no row stands for.
    pub superseded: Vec<Superseded>,
    /// Sums.
    pub totals: Totals,
    jobs: Arc<[Arc<Job>]>,
    history: History,
    /// Where the videos are.
    folder: PathBuf,
}

impl Report {
    /// Of all jobs of a manifest and all that the ledger knows of its batch, with the videos that are in a folder.
    #[must_use]
    pub fn new(key: &BatchKey, simulated: bool, jobs: Arc<[Arc<Job>]>, history: History, folder: &Path) -> Self {
        let mut states: BTreeMap<&'static str, usize> = JobState::ALL.iter().map(|state| (state.name(), 0)).collect();
        let (mut shown, mut videos) = (HashSet::with_capacity(jobs.len()), 0);
        for job in &*jobs {
            let (attempt, state) = standing(job, &attempts_of(job, &history));
            shown.extend(attempt.map(|attempt| attempt.id));
            videos += usize::from(attempt.is_some_and(|attempt| file_of(attempt, folder).is_some()));
            *states.entry(state.name()).or_default() += 1;
        }
        let totals = Totals {
            jobs: jobs.len(),
            planned_usd: jobs.iter().map(|job| job.price).sum(),
            spent_usd: history.spent(),
            at_risk_usd: history.at_risk(),
            unknown_usd: history.unknown(),
            states,
            videos,
        };
        let superseded = superseded(&shown, &history, folder);
        Self { key: key.clone(), simulated, superseded, totals, jobs, history, folder: folder.to_owned() }
    }

    /// The jobs, in manifest order, with paths of videos in their folder.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.jobs.iter().map(|job| row(&self.key.batch, job, &self.history, &self.folder))
    }

    /// The folder of the videos.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Tasks that no row stands for, with paths of videos as they are seen from a report in this folder.
    #[must_use]
    pub fn superseded_seen_from(&self, folder: &Path) -> Vec<Superseded> {
        let way = way(folder, &self.folder);
        let seen = self.superseded.iter().cloned().map(|mut superseded| {
            superseded.file = superseded.file.map(|file| format!("{way}{file}"));
            superseded
        });
        seen.collect()
    }

    /// The jobs, in manifest order, with paths of videos as they are seen from a report in this folder.
    pub fn rows_seen_from(&self, folder: &Path) -> impl Iterator<Item = Row> {
        let way = way(folder, &self.folder);
        self.rows().map(move |mut row| {
            for file in row.file.iter_mut().chain(&mut row.detail.versions) {
                file.insert_str(0, &way);
            }
            row
        })
    }
}

/// The attempts of a job that may have reached the service, oldest first.
fn attempts_of<'h>(job: &Job, history: &'h History) -> Vec<&'h Attempt> {
    history.of(&job.id).filter(|attempt| attempt.state != AttemptState::Void).collect()
}

/// The attempt that stands for a job, and where the job stands.
fn standing<'h>(job: &Job, attempts: &[&'h Attempt]) -> (Option<&'h Attempt>, JobState) {
    let shown = representative(job, attempts);
    let state = match shown {
        Some(attempt) => state(attempt),
        None if job.review.is_some() => JobState::Held,
        None => JobState::Pending,
    };
    (shown, state)
}

fn row(batch: &str, job: &Job, history: &History, folder: &Path) -> Row {
    let attempts = attempts_of(job, history);
    let (shown, state) = standing(job, &attempts);
    let charge = attempts.iter().map(|attempt| attempt.charge()).max().unwrap_or(Charge::None);
    let charged = attempts.iter().filter(|attempt| attempt.charge() == Charge::Charged);
    let error = shown.and_then(|attempt| attempt.error.as_ref());
    let accepted = shown.filter(|attempt| attempt.task.is_some());
    let submitted_at = accepted.and_then(|attempt| attempt.answered_at);
    let ended_at = shown.and_then(|attempt| attempt.ended_at);
    let file = shown.and_then(|attempt| file_of(attempt, folder));
    let others = attempts.iter().filter(|attempt| shown.is_none_or(|shown| shown.id != attempt.id));
    let detail = Detail {
        price: shown.map_or(job.price, |attempt| attempt.price),
        charge: shown.map_or(Charge::None, Attempt::charge),
        times: shown.map(Times::of),
        versions: others.filter_map(|attempt| Some(file_of(attempt, folder)?.path.to_string())).collect(),
    };
    Row {
        id: job.id.to_string(),
        batch: batch.to_owned(),
        model: job.spec.model.clone(),
        state,
        charge,
        cost_usd: (charge != Charge::Unknown).then(|| charged.map(|attempt| attempt.price).sum()),
        task_id: shown.and_then(|attempt| attempt.task.as_ref()).map(ToString::to_string),
        video_url: shown.and_then(|attempt| attempt.video_url.clone()),
        file: file.map(|file| file.path.to_string()),
        sha256: file.map(|file| file.sha256.clone()),
        bytes: file.map(|file| file.bytes),
        size: job.spec.size.clone(),
        aspect_ratio: job.spec.aspect_ratio.clone(),
        duration_s: job.spec.duration,
        take: job.take,
        tags: job.tags.clone(),
        face: job.spec.face.clone(),
        attempts: attempts.len(),
        polls: shown.map_or(0, |attempt| attempt.polls),
        submitted_at,
        completed_at: ended_at.filter(|_| state == JobState::Completed),
        generation_s: submitted_at.zip(ended_at).and_then(|(from, to)| seconds(from, to)),
        error_code: error.and_then(|error| error.code.clone()),
        error_message: error.map(|error| error.message.clone()),
        error: error.map(|error| error.raw.clone()),
        prompt: job.spec.prompt.clone(),
        detail,
    }
}

/// The video of an attempt, while it is here.
fn file_of<'a>(attempt: &'a Attempt, folder: &Path) -> Option<&'a VideoFile> {
    attempt.file.as_deref().filter(|file| is_whole(folder, file))
}

fn superseded(shown: &HashSet<AttemptId>, history: &History, folder: &Path) -> Vec<Superseded> {
    let others = history.attempts().filter(|attempt| !shown.contains(&attempt.id) && attempt.charge() != Charge::None);
    others
        .map(|attempt| Superseded {
            job: attempt.job.to_string(),
            state: state(attempt),
            charge: attempt.charge(),
            price_usd: attempt.price,
            task_id: attempt.task.as_ref().map(ToString::to_string),
            video_url: attempt.video_url.clone(),
            file: file_of(attempt, folder).map(|file| file.path.to_string()),
            request: serde_json::from_str(&attempt.request).unwrap_or_default(),
        })
        .collect()
}

/// The attempt that stands for a job: one in doubt before all, else the completed one, else the latest of this wording.
fn representative<'a>(job: &Job, attempts: &[&'a Attempt]) -> Option<&'a Attempt> {
    let same = || {
        let same = attempts.iter().rev().filter(|attempt| attempt.fingerprint == *job.request.fingerprint());
        same.filter(|attempt| attempt.state != AttemptState::Void)
    };
    attempts
        .iter()
        .find(|attempt| attempt.state.is_doubtful())
        .or_else(|| same().find(|attempt| attempt.state == AttemptState::Completed))
        .or_else(|| same().next())
        .copied()
}

fn state(attempt: &Attempt) -> JobState {
    match attempt.state {
        AttemptState::Intended | AttemptState::InDoubt => JobState::InDoubt,
        AttemptState::Void => JobState::Pending,
        AttemptState::Rejected => JobState::Rejected,
        AttemptState::Queued => JobState::Queued,
        AttemptState::InProgress => JobState::InProgress,
        AttemptState::Completed => JobState::Completed,
        AttemptState::Failed => JobState::Failed,
    }
}

/// Seconds between two times, to the millisecond; unknown if the clock was set back between them.
fn seconds(from: Timestamp, to: Timestamp) -> Option<f64> {
    let millis = u32::try_from(to.duration_since(from).as_millis()).ok()?;
    Some(f64::from(millis) / 1000.0)
}
