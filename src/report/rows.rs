//! Makes the rows of a report from the jobs of a manifest and the ledger.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexSet;
use jiff::Timestamp;

use super::found::{Found, JobState, file_of, mismatch, relative_path, state};
use super::job_note::{NoteKind, NotedJobs, by_kind, notes, of_other};
use super::row::{Delivered, Detail, Exec, Row, Superseded, Totals, Version};
use crate::domain::{
    Attempt, AttemptId, AttemptState, BatchKey, Charge, Choice, Columns, History, Job, JobChoice, Reviewed, Usd,
    VideoFile, last_reviews,
};

/// The names of labels, of columns and of the axes of matrices.
#[derive(Default)]
pub(super) struct Sheet<'r> {
    pub labels: IndexSet<&'r str>,
    pub row: IndexSet<&'r str>,
    pub matrix: IndexSet<&'r str>,
}

/// A report before its format. Rows are made one by one during a write: ten thousand rows would take more memory than the run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The name and batch of the jobs.
    pub key: BatchKey,
    /// True if the simulator played the service, so nothing was paid.
    pub simulated: bool,
    /// Tasks without a row.
    pub superseded: Vec<Superseded>,
    /// Sums.
    pub totals: Totals,
    jobs: Arc<[Arc<Job>]>,
    /// The facts about each of them.
    found: Arc<[Found]>,
    history: History,
    /// The directory of the videos.
    directory: PathBuf,
}

impl Report {
    /// A report of all jobs of a manifest and of the batch in the ledger, with the videos in a directory.
    pub fn new(key: &BatchKey, simulated: bool, jobs: Arc<[Arc<Job>]>, history: History, directory: &Path) -> Self {
        let sum = |is_counted: fn(&Attempt) -> bool| cost(history.attempts(), is_counted);
        let mut totals = Totals {
            jobs: jobs.len(),
            planned_usd: jobs.iter().map(|job| job.purchase.price).sum(),
            spent_usd: sum(|it| it.charge() == Charge::Charged),
            at_risk_usd: sum(|it| it.state.is_doubtful()),
            unknown_usd: sum(|it| it.charge() == Charge::Unknown && !it.state.is_doubtful()),
            states: JobState::ALL.map(|state| (state.name(), 0)).into(),
            choices: JobChoice::ALL.map(|choice| (choice.name(), 0)).into(),
            ..Totals::default()
        };
        let mut shown = HashSet::with_capacity(jobs.len());
        let found: Arc<[Found]> = jobs.iter().map(|job| Found::new(job, &history, directory)).collect();
        for (job, found) in jobs.iter().zip(&*found) {
            let (attempt, state) = (found.shown(&history), found.state);
            shown.extend(attempt.map(|attempt| attempt.id));
            match attempt.and_then(|attempt| attempt.particulars.executed.as_deref()) {
                Some(executed) if executed.is_owed() => totals.exec_owed += 1,
                Some(executed) if executed.error.is_some() => totals.exec_failed += 1,
                _ => {}
            }
            let is_archived = attempt.is_some_and(|attempt| attempt.particulars.archived.is_some());
            totals.videos += usize::from(found.has_file);
            totals.archived += usize::from(!found.has_file && is_archived);
            if let Some(choice) = found.choice {
                *totals.choices.entry(choice.name()).or_default() += 1;
            }
            match state {
                JobState::Held => totals.held_usd += job.purchase.price,
                state if state.is_unbought() => totals.to_submit_usd += job.purchase.price,
                _ => {}
            }
            *totals.states.entry(state.name()).or_default() += 1;
        }
        for attempt in history.attempts().filter(|attempt| mismatch(attempt).is_some()) {
            totals.mismatched += 1;
            totals.mismatched_usd += attempt.cost();
        }
        let superseded = superseded(&shown, &history, directory);
        Self { key: key.clone(), simulated, superseded, totals, jobs, found, history, directory: directory.to_owned() }
    }

    /// Adds the fees of face reviews. A simulated report has none.
    #[must_use]
    pub fn with_face_reviews(mut self, usd: Usd) -> Self {
        self.totals.face_reviews_usd = if self.simulated { Usd::ZERO } else { usd };
        self
    }

    /// The jobs, in manifest order, with paths of videos in their directory.
    pub fn rows(&self) -> impl Iterator<Item = Row> {
        self.rows_in(|_| true)
    }

    /// The jobs in some states, in manifest order.
    pub fn rows_in(&self, is_meant: impl Fn(JobState) -> bool) -> impl Iterator<Item = Row> {
        let meant = self.each().filter(move |(_, found)| is_meant(found.state));
        meant.map(|(job, found)| row(&self.key.batch, job, found, &self.history, &self.directory))
    }

    /// Each job with its state, in manifest order.
    pub fn states(&self) -> impl Iterator<Item = (&Job, JobState)> {
        self.each().map(|(job, found)| (job, found.state))
    }

    /// Each job with its state and its representing attempt, in manifest order.
    pub(super) fn shown(&self) -> impl Iterator<Item = (&Job, JobState, Option<&Attempt>)> {
        self.each().map(|(job, found)| (job, found.state, found.shown(&self.history)))
    }

    /// What the jobs ask of their reader, by kind, the most urgent first.
    pub fn notes(&self) -> BTreeMap<NoteKind, NotedJobs> {
        let of_jobs = self.each().map(|(job, found)| (job.id(), notes(job, found, &self.history)));
        let shown: HashSet<AttemptId> = self.shown().filter_map(|(.., attempt)| Some(attempt?.id)).collect();
        let others = self.history.attempts().filter(|attempt| !shown.contains(&attempt.id));
        by_kind(of_jobs.chain(others.map(|attempt| (attempt.job(), of_other(attempt).into_iter().collect()))))
    }

    fn each(&self) -> impl Iterator<Item = (&Job, &Found)> {
        self.jobs.iter().map(Arc::as_ref).zip(&*self.found)
    }

    /// The columns of the jobs' sheet, each set of names in the order of first appearance.
    pub(super) fn sheet(&self) -> Sheet<'_> {
        let mut sheet = Sheet::default();
        let mut seen: HashSet<*const Columns> = HashSet::new();
        for job in &*self.jobs {
            sheet.labels.extend(job.purchase.labels.keys().map(String::as_str));
            sheet.matrix.extend(job.matrix.iter().flat_map(|matrix| matrix.keys()).map(String::as_str));
            // Rows of one table share their columns.
            if let Some(row) = job.row.as_ref().filter(|row| seen.insert(Arc::as_ptr(row.columns()))) {
                sheet.row.extend(row.iter().map(|(name, _)| name));
            }
        }
        sheet
    }

    /// Videos with a mismatch, each with its differences.
    pub(super) fn mismatches(&self) -> impl Iterator<Item = (&Attempt, String)> {
        self.history.attempts().filter_map(|attempt| Some((attempt, mismatch(attempt)?)))
    }

    /// The directory of the videos.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Tasks without a row, with paths of videos relative to this directory.
    pub fn superseded_seen_from(&self, directory: &Path) -> Vec<Superseded> {
        let way = relative_path(directory, &self.directory);
        let seen = self.superseded.iter().cloned().map(|mut superseded| {
            superseded.file = superseded.file.map(|file| format!("{way}{file}"));
            superseded
        });
        seen.collect()
    }

    /// The jobs, in manifest order, with paths of videos relative to this directory.
    pub fn rows_seen_from(&self, directory: &Path) -> impl Iterator<Item = Row> {
        let way = relative_path(directory, &self.directory);
        self.rows().map(move |mut row| {
            let versions = row.detail.versions.iter_mut().map(|version| &mut version.file);
            for file in row.file.iter_mut().chain(versions) {
                file.insert_str(0, &way);
            }
            row
        })
    }
}

fn row(batch: &str, job: &Job, found: &Found, history: &History, directory: &Path) -> Row {
    // The attempts that may have reached the service.
    let attempts: Vec<&Attempt> =
        found.attempts(history).filter(|attempt| attempt.state != AttemptState::Void).collect();
    let (shown, state) = (found.shown(history), found.state);
    let charge = attempts.iter().map(|attempt| attempt.charge()).max().unwrap_or(Charge::None);
    let sum = |is_counted: fn(&Attempt) -> bool| cost(attempts.iter().copied(), is_counted);
    let (spent, at_risk) = (sum(|it| it.charge() == Charge::Charged), sum(|it| it.state.is_doubtful()));
    let perhaps = sum(|it| it.charge() == Charge::Unknown);
    let error = shown.and_then(|attempt| attempt.error.as_ref());
    let submitted_at = shown.and_then(submitted_at);
    // A due job has the error of its last submission, any other job that of its representing attempt.
    let shown = shown.or_else(|| found.attempts(history).next_back());
    let was_last_refused = matches!(state, JobState::Pending | JobState::Rejected | JobState::Failed);
    let unsent = history.why_unsent(job.id()).filter(|_| was_last_refused).map(|reason| format!("not sent: {reason}"));
    // The reason is newer than any response, because an intent removes it. So code and body of the response are left out.
    let error = error.filter(|_| unsent.is_none());
    let declared = shown.and_then(|attempt| attempt.particulars.declared);
    let ended_at = shown.and_then(|attempt| attempt.ended_at);
    let file = shown.and_then(|attempt| attempt.file.as_deref()).filter(|_| found.has_file);
    let archived = shown.and_then(|attempt| attempt.particulars.archived.as_deref());
    // An archived video keeps its hash.
    let known = shown.and_then(|attempt| attempt.file.as_deref()).filter(|_| found.has_file || archived.is_some());
    let mut reviews = last_reviews(attempts.iter().copied().filter(|attempt| found.is_take(attempt)));
    let decided = reviews.iter().filter(|it| it.review.decides).map(|it| it.at).max();
    let counts = |it: &Reviewed| Some(it.at) >= decided || !it.review.note.is_empty();
    reviews.retain(|it| counts(it) && counts_for(it.review.choice, found.choice));
    let detail = Detail {
        notes: notes(job, found, history),
        spent,
        unknown: perhaps.saturating_sub(at_risk),
        versions: versions(found, shown, file, &attempts, directory),
    };
    Row {
        id: job.id().to_string(),
        batch: batch.to_owned(),
        model: job.spec.model.clone(),
        state,
        charge,
        cost_usd: (charge != Charge::Unknown).then_some(spent),
        task_id: shown.and_then(|attempt| attempt.task.as_ref()).map(|task| task.id.to_string()),
        video_url: shown.and_then(|attempt| attempt.video_url.clone()),
        file: file.map(|file| file.path.to_string()),
        sha256: known.map(|file| file.sha256.clone()),
        bytes: known.map(|file| file.bytes),
        size: job.spec.size.clone(),
        aspect_ratio: job.spec.aspect_ratio.clone(),
        duration_s: job.spec.duration,
        take: job.take,
        tags: job.tags.clone(),
        labels: job.purchase.labels.clone(),
        face: job.spec.face.clone(),
        attempts: attempts.len(),
        polls: shown.map_or(0, |attempt| attempt.polls),
        progress: progress(state),
        submitted_at,
        completed_at: ended_at.filter(|_| state == JobState::Completed),
        generation_s: submitted_at.zip(ended_at).and_then(|(from, to)| seconds(from, to)),
        error_code: error.and_then(|error| error.code.clone()),
        error_message: unsent.or_else(|| error.map(|error| error.message.clone())),
        error: error.map(|error| error.raw.clone()),
        row: job.row.clone(),
        matrix: job.matrix.clone(),
        prompt: job.spec.prompt.clone(),
        price_usd: job.purchase.price,
        at_risk_usd: at_risk,
        reported_usd: shown.and_then(|attempt| attempt.particulars.reported_usd),
        choice: found.choice,
        reviewer: joined(reviews.iter().map(|it| it.review.by.clone()), ", "),
        note: joined(remarks(&reviews), "\n"),
        delivered: shown.map(delivered).unwrap_or_default(),
        declared: declared.map(|declared| declared.to_string()),
        archived_at: archived.map(|archived| archived.at),
        exec: shown.and_then(|attempt| attempt.particulars.executed.as_deref()).map(Exec::from),
        runner: shown.and_then(|attempt| attempt.particulars.fetched_by.as_deref()).map(str::to_owned),
        purchase: shown.filter(|attempt| attempt.charge() != Charge::None).map(|attempt| Box::new(attempt.into())),
        detail,
    }
}

/// The cost of some attempts.
fn cost<'a>(attempts: impl Iterator<Item = &'a Attempt>, is_counted: fn(&Attempt) -> bool) -> Usd {
    attempts.filter(|attempt| is_counted(attempt)).map(Attempt::cost).sum()
}

/// The facts of a delivered video; empty without a readable video.
fn delivered(attempt: &Attempt) -> Delivered {
    let Some(footage) = attempt.file.as_ref().and_then(|file| file.footage.as_ref()) else {
        return Delivered::default();
    };
    Delivered {
        seconds: footage.duration_s(),
        width: footage.size.map(|(width, _)| width),
        height: footage.size.map(|(_, height)| height),
        fps: footage.fps(),
        audio: Some(footage.has_audio),
        mismatch: mismatch(attempt),
    }
}

/// The progress in percent, if it is certain.
fn progress(state: JobState) -> Option<u8> {
    match state {
        JobState::Completed => Some(100),
        JobState::Queued => Some(0),
        _ => None,
    }
}

/// The time of a submission: of its acceptance, or of the intent if it is in doubt.
fn submitted_at(attempt: &Attempt) -> Option<Timestamp> {
    match &attempt.task {
        Some(_) => attempt.answered_at,
        None => Some(attempt.intended_at).filter(|_| attempt.state.is_doubtful()),
    }
}

/// Returns whether a reviewer's choice is part of the job's choice. A note without a choice always is, and so is every choice of an undecided job.
fn counts_for(choice: Option<Choice>, of_job: Option<JobChoice>) -> bool {
    match of_job {
        None | Some(JobChoice::Conflict) => true,
        Some(JobChoice::Keep) => choice != Some(Choice::Retake),
        Some(JobChoice::Retake) => choice != Some(Choice::Keep),
    }
}

/// The videos of the attempts that are not shown.
fn versions(
    found: &Found,
    shown: Option<&Attempt>,
    file: Option<&VideoFile>,
    attempts: &[&Attempt],
    directory: &Path,
) -> Vec<Version> {
    let completed: Vec<_> = attempts.iter().filter(|attempt| attempt.state == AttemptState::Completed).collect();
    let others = (1..).zip(&completed).filter(|(_, attempt)| shown.is_none_or(|shown| shown.id != attempt.id));
    let here = others.filter_map(|(number, attempt)| Some((number, attempt, file_of(attempt, directory)?)));
    // Identical takes are one file.
    let other = here.filter(|(.., other)| file.is_none_or(|file| file.path != other.path));
    let version = other.map(|(number, attempt, other)| Version {
        file: other.path.to_string(),
        task_id: attempt.task.as_ref().filter(|_| found.is_take(attempt)).map(|task| task.id.to_string()),
        nth: (number, completed.len()),
        price: attempt.cost(),
    });
    version.collect()
}

/// The notes of reviewers; with their names, if there are several reviewers.
fn remarks(reviews: &[&Reviewed]) -> impl Iterator<Item = String> {
    let noted = reviews.iter().map(|reviewed| &reviewed.review).filter(|review| !review.note.is_empty());
    noted.map(|it| if reviews.len() == 1 { it.note.clone() } else { format!("{}: {}", it.by, it.note) })
}

fn joined(words: impl Iterator<Item = String>, between: &str) -> Option<String> {
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join(between))
}

fn superseded(shown: &HashSet<AttemptId>, history: &History, directory: &Path) -> Vec<Superseded> {
    let others = history.attempts().filter(|attempt| !shown.contains(&attempt.id) && attempt.charge() != Charge::None);
    others
        .map(|attempt| Superseded {
            job: attempt.job().to_string(),
            state: state(attempt),
            charge: attempt.charge(),
            price_usd: attempt.purchase.price,
            task_id: attempt.task.as_ref().map(|task| task.id.to_string()),
            video_url: attempt.video_url.clone(),
            file: file_of(attempt, directory).map(|file| file.path.to_string()),
            purchase: attempt.into(),
        })
        .collect()
}

/// Seconds between two times, to the millisecond; `None` if the clock was set back.
fn seconds(from: Timestamp, to: Timestamp) -> Option<f64> {
    let millis = u32::try_from(to.duration_since(from).as_millis()).ok()?;
    Some(f64::from(millis) / 1000.0)
}
