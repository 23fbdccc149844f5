//! Downloads of videos during a run: a few in parallel, outside the slots.
//!
//! A URL expires, so a video is downloaded once its task is completed, in turn with those of earlier runs. If its URL is no longer valid, the
//! task is polled for a new one. If that fails, the content endpoint is used. All of these requests only read: a failed
//! download never repeats a generation.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::event::{FetchedVideo, RunEvent};
use super::gateway::Gateway;
use super::settings::StopReason;
use crate::domain::{AttemptId, Footage, OutputPath, TaskId, TaskNames, VideoFile, with_causes};
use crate::download::{self, Downloads, FetchError, Link, Stored};
use crate::ledger::Event;
use crate::plan::{Download, DownloadPlan};
use crate::service::{PollAnswer, VideoService};

/// The maximum number of concurrent downloads.
const MAX_DOWNLOADS: usize = 4;
/// The number of polls for a new URL, and the time between two of them.
const MAX_POLLS: usize = 3;
const BETWEEN_POLLS: Duration = Duration::from_secs(2);
/// The longest pause of the service to wait for.
const MAX_PAUSE: Duration = Duration::from_mins(10);

/// The downloads of a run.
pub(super) struct Fetcher<'r, S> {
    gateway: &'r Gateway<'r, S>,
    downloads: &'r dyn Downloads,
    permits: Semaphore,
}

impl<'r, S: VideoService> Fetcher<'r, S> {
    pub(super) fn new(gateway: &'r Gateway<'r, S>, downloads: &'r dyn Downloads) -> Self {
        Self { gateway, downloads, permits: Semaphore::new(MAX_DOWNLOADS) }
    }

    /// Downloads a video. `is_new` tells whether this run bought it. Returns false if that fails.
    pub(super) async fn fetch(&self, wanted: &DownloadPlan, download: &Download, is_new: bool) -> bool {
        (self.gateway.emit)(RunEvent::ToFetch { job: download.job.clone() });
        match self.fetch_in_turn(wanted, download).await {
            Ok(footage) => {
                let judge = |footage| self.gateway.judge(&download.job, &download.request, footage, is_new);
                footage.iter().for_each(judge);
                true
            }
            // After an abort, the next run downloads it.
            Err(Unfetched::Aborted) => true,
            Err(Unfetched::Missed { message, is_local }) => {
                let (job, task) = (download.job.clone(), download.task.id.clone());
                (self.gateway.emit)(RunEvent::NotFetched { job, task, message: message.clone() });
                if is_local {
                    // A full disk has no room for further videos.
                    self.gateway.stop_because(StopReason::FilesFailed, message);
                }
                false
            }
        }
    }

    async fn fetch_in_turn(&self, wanted: &DownloadPlan, download: &Download) -> Result<Option<Footage>, Unfetched> {
        // The semaphore is never closed.
        let _permit = self.unless_aborting(self.permits.acquire()).await?;
        let occupants = wanted.occupants(&download.destination, download.attempt);
        let destination = download::Destination {
            directory: download.destination.directory.clone(),
            path: download.destination.path.clone(),
            is_version: download.destination.is_version,
            occupant: occupants.first().map(|(_, file)| file.clone()),
            task: download.task.id.clone(),
        };
        if let Some(known) = &download.known
            && let Some(path) = self.downloads.find(&destination, known).await
        {
            self.write_moved(download, known, path).await;
            return Ok(None);
        }
        let (stored, link) = self.fetch_from_anywhere(download, &destination).await?;
        let footage = stored.file.footage.clone().unwrap_or_default();
        self.write_down(download, stored, link, &occupants).await;
        Ok(Some(footage))
    }

    /// Returns the result of waiting, unless the run aborts first.
    async fn unless_aborting<T>(&self, wait: impl Future<Output = T>) -> Result<T, Unfetched> {
        tokio::select! {
            biased;
            () = self.gateway.stop.aborting() => Err(Unfetched::Aborted),
            value = wait => Ok(value),
        }
    }

    /// Downloads the video from the first source that has it. Returns its new URL, if the task has one.
    async fn fetch_from_anywhere(
        &self,
        download: &Download,
        destination: &download::Destination,
    ) -> Result<(Stored, Option<String>), Unfetched> {
        let contents: Vec<String> = download.task.each().map(|task| self.gateway.service.content_url(task)).collect();
        let mut shown = Vec::new();
        if !contents.contains(&download.video_url) {
            match self.fetch_from(Link::Video(download.video_url.clone()), destination).await? {
                Ok(stored) => return Ok((stored, None)),
                Err(miss) => shown.push(format!("its link: {miss}")),
            }
        }
        if download.account != *self.gateway.account {
            let owner = &download.account;
            shown.push(format!(
                "only {owner}, which owns the task, can return a new URL; if this key belongs to the same account, pass \
                 `--same-account`"
            ));
            return Err(Unfetched::missed(&shown));
        }
        match self.unless_aborting(self.ask_again(&download.task)).await? {
            Ok(url) if url != download.video_url && !contents.contains(&url) => {
                match self.fetch_from(Link::Video(url.clone()), destination).await? {
                    Ok(stored) => return Ok((stored, Some(url))),
                    Err(miss) => shown.push(format!("a new link: {miss}")),
                }
            }
            Ok(_) => {}
            Err(message) => shown.push(format!("asked for a new link: {message}")),
        }
        for content in contents {
            match self.fetch_from(Link::Content(content), destination).await? {
                // The content endpoint is not recorded as a URL: it needs the key.
                Ok(stored) => return Ok((stored, None)),
                Err(miss) => shown.push(format!("the content endpoint: {miss}")),
            }
        }
        Err(Unfetched::missed(&shown))
    }

    /// Downloads from one source. The inner error is about this source only.
    async fn fetch_from(
        &self,
        link: Link,
        destination: &download::Destination,
    ) -> Result<Result<Stored, FetchError>, Unfetched> {
        let fetched = self.unless_aborting(self.downloads.fetch(&link, destination)).await?;
        let stored = match fetched {
            Ok(()) => self.downloads.store(destination).await,
            Err(error) => Err(error),
        };
        match stored {
            Err(error) if error.is_local() => Err(Unfetched::Missed { message: with_causes(&error), is_local: true }),
            stored => Ok(stored),
        }
    }

    /// Polls the task for its current URL, by each of its IDs.
    async fn ask_again(&self, task: &TaskNames) -> Result<String, String> {
        let mut denied = None;
        for name in task.each() {
            match self.ask_by(name, task).await? {
                Answered::Link(link) => return link.ok_or_else(|| "the task names none".to_owned()),
                Answered::Denied(message) => denied = Some(message),
            }
        }
        Err(denied.unwrap_or_default())
    }

    /// Polls by one ID, a few times.
    async fn ask_by(&self, name: &TaskId, task: &TaskNames) -> Result<Answered, String> {
        let mut why = String::new();
        for _ in 0..MAX_POLLS {
            // A pause that is longer than a URL may live is left to the next run.
            while let Some(pause) = self.gateway.pace.pending() {
                if pause > MAX_PAUSE {
                    return Err("the service asked everybody to wait".to_owned());
                }
                tokio::time::sleep(pause).await;
            }
            self.gateway.pace.turn_to_poll().await;
            match self.gateway.service.poll(name).await {
                // The URL of another task leads to another video.
                PollAnswer::Report(report) => match report.other_id(task) {
                    None => return Ok(Answered::Link(report.video_url)),
                    Some(other) => why = format!("the service answered about the task {other}"),
                },
                PollAnswer::Missing(message) => return Ok(Answered::Denied(message)),
                PollAnswer::KeyRefused(error) => return Err(error.message),
                PollAnswer::Wait(wait, message) => {
                    match wait {
                        Some(wait) => self.gateway.pace.pause(wait),
                        None => drop(self.gateway.pace.slow_down()),
                    }
                    why = message;
                }
                PollAnswer::Transient(message) => {
                    tokio::time::sleep(BETWEEN_POLLS).await;
                    why = message;
                }
            }
        }
        Err(why)
    }

    /// Records the new path of a video that is already here. Another batch in the same directory may have displaced it.
    async fn write_moved(&self, download: &Download, known: &VideoFile, path: OutputPath) {
        if self.gateway.record(download.attempt, Event::Moved(path.clone())).await {
            self.tell_fetched(download, VideoFile { path, ..known.clone() });
        }
    }

    async fn write_down(
        &self,
        download: &Download,
        stored: Stored,
        link: Option<String>,
        occupants: &[&(AttemptId, VideoFile)],
    ) {
        let Stored { file, displaced } = stored;
        let moved = displaced
            .into_iter()
            .flat_map(|path| occupants.iter().map(move |(attempt, _)| (*attempt, Event::Moved(path.clone()))));
        let linked = link.map(|video_url| (download.attempt, Event::Relinked { video_url }));
        let fetched = (download.attempt, Event::Fetched(file.clone()));
        // If the ledger fails, the next run repeats this and finds the file.
        for (attempt, event) in moved.chain(linked).chain([fetched]) {
            if !self.gateway.record(attempt, event).await {
                return;
            }
        }
        self.tell_fetched(download, file);
    }

    fn tell_fetched(&self, download: &Download, file: VideoFile) {
        let Download { job, attempt, task, destination, .. } = download;
        let (job, task, directory) = (job.clone(), task.clone(), destination.directory.clone());
        (self.gateway.emit)(RunEvent::Fetched(Box::new(FetchedVideo {
            job,
            attempt: *attempt,
            task,
            directory,
            file,
        })));
    }
}

/// The response to a poll for a URL.
enum Answered {
    /// The URL, if the task has one.
    Link(Option<String>),
    /// The service doesn't know the task.
    Denied(String),
}

/// The reason that a video is missing.
enum Unfetched {
    /// The run aborts.
    Aborted,
    /// The download failed.
    Missed { message: String, is_local: bool },
}

impl Unfetched {
    fn missed(shown: &[String]) -> Self {
        Self::Missed { message: shown.join("; "), is_local: false }
    }
}
