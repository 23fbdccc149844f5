//! Events of a run, for progress, log, and tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::settings::StopReason;
use crate::domain::{AttemptId, Charge, JobId, NoticeCode, TaskId, TaskNames, Usd, VideoFile};

/// An event of a run.
#[derive(Clone, PartialEq, Debug)]
pub enum RunEvent {
    /// The run begins.
    Started {
        /// The number of jobs to submit.
        submit: usize,
        /// The number of active tasks to poll.
        resume: usize,
        /// The price of the submissions.
        planned: Usd,
        /// The number of videos of earlier runs to download.
        fetch: usize,
    },
    /// The service accepted a job.
    Submitted {
        /// The job.
        job: JobId,
        /// Its task.
        task: TaskNames,
        /// Its price.
        price: Usd,
    },
    /// A job was not sent, because its image has no URL. The next run tries again.
    NotSent {
        /// The job.
        job: JobId,
        /// The reason.
        reason: String,
    },
    /// The service rejected a job for good.
    Rejected {
        /// The job.
        job: JobId,
        /// The service's message.
        message: String,
    },
    /// The outcome of a submission is unknown.
    InDoubt {
        /// The job.
        job: JobId,
        /// The response, or the failure.
        message: String,
        /// The amount that may have been charged.
        price: Usd,
    },
    /// The service generates a task.
    Progressed {
        /// The job.
        job: JobId,
        /// 0 to 100, if the service reports it.
        percent: Option<u8>,
    },
    /// A task is completed.
    Completed {
        /// The job.
        job: JobId,
        /// The task.
        task: TaskNames,
    },
    /// A video is waiting to be downloaded.
    ToFetch {
        /// The job.
        job: JobId,
    },
    /// A video was downloaded.
    Fetched(Box<FetchedVideo>),
    /// The program for a video ended.
    Executed {
        /// The job.
        job: JobId,
        /// The task of the video.
        task: TaskId,
        /// The reason, if it failed.
        error: Option<String>,
    },
    /// A video could not be downloaded. The next run tries again.
    NotFetched {
        /// The job.
        job: JobId,
        /// The task of the video.
        task: TaskId,
        /// The reason.
        message: String,
    },
    /// A task failed.
    Failed {
        /// The job.
        job: JobId,
        /// The task.
        task: TaskNames,
        /// The service's message.
        message: String,
        /// Whether it is paid.
        charge: Charge,
    },
    /// A job is submitted again after its task failed.
    Retrying {
        /// The job.
        job: JobId,
        /// Its price.
        price: Usd,
    },
    /// The service uses a second ID for a task.
    TaskAlias {
        /// The job.
        job: JobId,
        /// Both IDs.
        task: TaskNames,
    },
    /// A task is left active. The next run resumes it.
    TaskLeft {
        /// The job.
        job: JobId,
        /// The task.
        task: TaskNames,
        /// The reason.
        why: LeaveReason,
        /// The last status, if it was neither queued nor in progress.
        said: Option<String>,
        /// True if the task may never end.
        is_endless: bool,
    },
    /// The service asked to wait, and all requests do.
    Waiting {
        /// The time to wait.
        wait: Duration,
        /// The reason.
        message: String,
    },
    /// Other runners of the account have the slots, or must wait, too. Emitted once.
    WaitingForRunners {
        /// The time until the next try.
        wait: Duration,
        /// What they wait for.
        message: String,
    },
    /// A request had no usable response. The run repeats it.
    RequestFailed {
        /// The failure.
        message: String,
    },
    /// Something unusual that doesn't end the run, but may end the submission of a model.
    Warned {
        /// The code.
        code: NoticeCode,
        /// The description.
        message: String,
    },
    /// The service responds again.
    ServiceRecovered {
        /// The time without a response.
        after: Duration,
    },
    /// The service reports an undocumented state. Emitted once for each.
    UnknownStatus {
        /// The state.
        status: String,
    },
    /// The ID of a new task could not be recorded: you need it.
    TaskNotRecorded {
        /// The job.
        job: JobId,
        /// The ID that would be lost.
        task: TaskNames,
        /// Its price.
        price: Usd,
    },
    /// The run stops submitting.
    Stopping {
        /// The reason.
        reason: StopReason,
        /// The description.
        message: String,
    },
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
