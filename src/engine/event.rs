//! Events of a run, for progress, log, and tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::settings::StopReason;
use crate::domain::{AttemptId, Charge, JobId, NoticeCode, TaskId, TaskNames, Usd, VideoFile};

/// An event of a run.
#[expect(missing_docs, reason = "fields are named after what they hold")]
#[derive(Clone, PartialEq, Debug)]
pub enum RunEvent {
    /// The run begins: with jobs to submit and their price, active tasks to poll, and videos of earlier runs to download.
    Started { submit: usize, resume: usize, planned: Usd, fetch: usize },
    /// The service accepted a job.
    Submitted { job: JobId, task: TaskNames, price: Usd },
    /// A job was not sent, because its image has no URL. The next run tries again.
    NotSent { job: JobId, reason: String },
    /// The service rejected a job for good.
    Rejected { job: JobId, message: String },
    /// The outcome of a submission is unknown, and its price may have been charged.
    InDoubt { job: JobId, message: String, price: Usd },
    /// The service generates a task. Its progress is 0 to 100, if it is reported.
    Progressed { job: JobId, percent: Option<u8> },
    /// A task is completed.
    Completed { job: JobId, task: TaskNames },
    /// A video is waiting to be downloaded.
    ToFetch { job: JobId },
    /// A video was downloaded.
    Fetched(Box<FetchedVideo>),
    /// The program for a video ended.
    Executed { job: JobId, task: TaskId, error: Option<String> },
    /// A video could not be downloaded. The next run tries again.
    NotFetched { job: JobId, task: TaskId, message: String },
    /// A task failed.
    Failed { job: JobId, task: TaskNames, message: String, charge: Charge },
    /// A job is submitted again after its task failed.
    Retrying { job: JobId, price: Usd },
    /// The service uses a second ID for a task.
    TaskAlias { job: JobId, task: TaskNames },
    /// A task is left active, and the next run resumes it: with the reason, and its last status if that was neither queued nor in progress. One that is
    /// endless may never end.
    TaskLeft { job: JobId, task: TaskNames, why: LeaveReason, said: Option<String>, is_endless: bool },
    /// The service asked to wait, and all requests do.
    Waiting { wait: Duration, message: String },
    /// Other runners have the slots of the account. Emitted once.
    WaitingForRunners { message: String },
    /// A request had no usable response. The run repeats it.
    RequestFailed { message: String },
    /// Something unusual that doesn't end the run, but may end the submission of a model.
    Warned { code: NoticeCode, message: String },
    /// The service responds again.
    ServiceRecovered { after: Duration },
    /// The service reports an undocumented state. Emitted once for each.
    UnknownStatus { status: String },
    /// The ID of a new task could not be recorded: you need it.
    TaskNotRecorded { job: JobId, task: TaskNames, price: Usd },
    /// The run stops submitting.
    Stopping { reason: StopReason, message: String },
}

impl RunEvent {
    /// Returns the stable code of the event.
    pub fn code(&self) -> NoticeCode {
        match self {
            Self::Started { .. } => NoticeCode::Started,
            Self::Submitted { .. } => NoticeCode::Submitted,
            Self::NotSent { .. } => NoticeCode::NotSent,
            Self::Rejected { .. } => NoticeCode::Rejected,
            Self::InDoubt { .. } => NoticeCode::InDoubt,
            Self::Progressed { .. } => NoticeCode::Progressed,
            Self::Completed { .. } => NoticeCode::Completed,
            Self::ToFetch { .. } => NoticeCode::ToFetch,
            Self::Fetched(_) => NoticeCode::Fetched,
            Self::Executed { error: None, .. } => NoticeCode::Executed,
            Self::Executed { error: Some(_), .. } => NoticeCode::NotExecuted,
            Self::NotFetched { .. } => NoticeCode::NotFetched,
            Self::Failed { .. } => NoticeCode::Failed,
            Self::Retrying { .. } => NoticeCode::Retrying,
            Self::TaskAlias { .. } => NoticeCode::TaskAlias,
            Self::TaskLeft { .. } => NoticeCode::TaskLeft,
            Self::Waiting { .. } => NoticeCode::Waiting,
            Self::WaitingForRunners { .. } => NoticeCode::WaitingForRunners,
            Self::RequestFailed { .. } => NoticeCode::RequestFailed,
            Self::Warned { code, .. } => *code,
            Self::ServiceRecovered { .. } => NoticeCode::ServiceRecovered,
            Self::UnknownStatus { .. } => NoticeCode::UnknownStatus,
            Self::TaskNotRecorded { .. } => NoticeCode::TaskNotRecorded,
            Self::Stopping { .. } => NoticeCode::Stopping,
        }
    }
}

/// A downloaded video.
#[derive(Clone, PartialEq, Debug)]
pub struct FetchedVideo {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// The directory of its path, if it is not that of the run.
    pub directory: Option<Arc<Path>>,
    /// The video.
    pub file: VideoFile,
}

/// The reason to leave a task active.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaveReason {
    /// It exceeded `--deadline`.
    Deadline,
    /// The run was interrupted, or its time limit is over.
    Interrupted,
    /// The service refused the key several times in a row.
    KeyRefused,
}
