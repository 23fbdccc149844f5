//! What happens during a run: the one language of progress, log and tests.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::stop::StopReason;
use crate::domain::{AttemptId, JobId, NoticeCode, TaskNames, Usd, VideoFile};

/// Something that happened.
#[derive(Clone, PartialEq, Debug)]
pub enum RunEvent {
    /// The run begins.
    Started {
        /// Jobs that are submitted.
        submit: usize,
        /// Tasks at the service that are polled on.
        resume: usize,
        /// What the submissions cost.
        planned: Usd,
        /// Videos of earlier runs that are fetched.
        fetch: usize,
    },
    /// There is a task for a job.
    Submitted {
        /// The job.
        job: JobId,
        /// The service's name for it.
        task: TaskNames,
        /// Its price.
        price: Usd,
    },
    /// Nothing was sent for a job whose turn it was, because its picture has no address; the next run tries again.
    NotSent {
        /// The job.
        job: JobId,
        /// Why not.
        reason: String,
    },
    /// The service refused a job for good.
    Rejected {
        /// The job.
        job: JobId,
        /// The service's message.
        message: String,
    },
    /// Nobody knows what came of a submission.
    InDoubt {
        /// The job.
        job: JobId,
        /// What happened.
        message: String,
        /// What may have been charged.
        price: Usd,
    },
    /// A task is being generated.
    Progressed {
        /// The job.
        job: JobId,
        /// 0 to 100, where the service says.
        percent: Option<u8>,
    },
    /// There is a video.
    Completed {
        /// The job.
        job: JobId,
    },
    /// A video is to be fetched, as soon as it is its turn.
    ToFetch {
        /// The job.
        job: JobId,
    },
    /// A video is here.
    Fetched(Box<FetchedVideo>),
    /// The program that was started for a video has ended.
    Executed {
        /// The job.
        job: JobId,
        /// Why it counts as failed, if it does.
        error: Option<String>,
    },
    /// A video could not be fetched; the next run tries again.
    NotFetched {
        /// The job.
        job: JobId,
        /// Why not.
        message: String,
    },
    /// The service failed.
    Failed {
        /// The job.
        job: JobId,
        /// The service's message.
        message: String,
    },
    /// A job whose task failed is paid for once more.
    Retrying {
        /// The job.
        job: JobId,
        /// Its price.
        price: Usd,
    },
    /// The service calls a task by another name too.
    TaskAlias {
        /// The job.
        job: JobId,
        /// Both names.
        task: TaskNames,
    },
    /// A task is left at the service; the next run goes on with it.
    TaskLeft {
        /// The job.
        job: JobId,
        /// Why.
        why: LeaveReason,
        /// What the service said last, if that was not that the task waits or is being generated.
        said: Option<String>,
        /// Whether that is a word that may go on for ever.
        is_endless: bool,
    },
    /// The service asked to wait, and everybody does.
    Waiting {
        /// How long.
        wait: Duration,
        /// In what words.
        message: String,
    },
    /// The service gave no usable answer; it is asked again.
    RequestFailed {
        /// What happened.
        message: String,
    },
    /// Other runners of the batch are at something, and this one waits for them.
    WaitingForRunners {
        /// How many of its tasks they look after.
        open: u32,
        /// How many they are.
        alive: u32,
    },
    /// Something unusual that the run copes with.
    Warned {
        /// The code.
        code: NoticeCode,
        /// The description.
        message: String,
    },
    /// The service answers again.
    ServiceRecovered {
        /// For how long it did not.
        after: Duration,
    },
    /// The service used a word that the interface does not have; told once for each word.
    UnknownStatus {
        /// The word.
        status: String,
    },
    /// A task was made and its id could not be written down. It must reach a person.
    TaskNotRecorded {
        /// The job.
        job: JobId,
        /// The id that would otherwise be lost.
        task: TaskNames,
        /// Its price.
        price: Usd,
    },
    /// Nothing is submitted any more.
    Stopping {
        /// Why.
        reason: StopReason,
        /// In what words.
        message: String,
    },
}

impl RunEvent {
    /// The code, for scripts.
    #[must_use]
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
            Self::RequestFailed { .. } => NoticeCode::RequestFailed,
            Self::WaitingForRunners { .. } => NoticeCode::WaitingForRunners,
            Self::Warned { code, .. } => *code,
            Self::ServiceRecovered { .. } => NoticeCode::ServiceRecovered,
            Self::UnknownStatus { .. } => NoticeCode::UnknownStatus,
            Self::TaskNotRecorded { .. } => NoticeCode::TaskNotRecorded,
            Self::Stopping { .. } => NoticeCode::Stopping,
        }
    }
}

/// A video that is in its place.
#[derive(Clone, PartialEq, Debug)]
pub struct FetchedVideo {
    /// The job.
    pub job: JobId,
    /// The attempt.
    pub attempt: AttemptId,
    /// The task.
    pub task: TaskNames,
    /// The folder that its path is in, if it is not the run's.
    pub folder: Option<Arc<Path>>,
    /// The video.
    pub file: VideoFile,
}

/// Why a task is left at the service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeaveReason {
    /// It took longer than `--deadline`.
    Deadline,
    /// The run was interrupted, or its time is over.
    Interrupted,
    /// The key was refused again and again.
    KeyRefused,
}
