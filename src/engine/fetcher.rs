//! Brings videos home, beside the run: a few at once, and never with a slot in hand.
//!
//! A link expires. So the video is asked for as soon as its task is completed, at the address that the task gave; if that is
//! no longer good, the task is asked for another one; and if that is no good either, the content endpoint is. All of it only
//! reads: whatever goes wrong here, nothing is generated again.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::event::{FetchedVideo, RunEvent};
use super::gateway::Gateway;
use super::stop::StopReason;
use crate::domain::{Account, AttemptId, OutputPath, TaskId, TaskNames, VideoFile, with_causes};
use crate::download::{self, Downloads, FetchError, Link, Stored};
use crate::ledger::{Event, LockedBatch};
use crate::plan::{Download, DownloadPlan};
use crate::service::{PollAnswer, VideoService};

/// The most downloads at once: of this run's videos, and of earlier ones.
const AT_ONCE: usize = 4;
const EARLIER_AT_ONCE: usize = 2;
/// How often a task is asked for a new link, and the pause in between.
const MOST_POLLS: usize = 3;
const BETWEEN_POLLS: Duration = Duration::from_secs(2);
/// The longest pause that is waited out for that.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// Fetches the videos of a run.
pub(super) struct Fetcher<'r, S> {
    gateway: &'r Gateway<'r, S>,
    ledger: &'r LockedBatch,
    account: &'r Account,
    downloads: &'r dyn Downloads,
    permits: Semaphore,
    earlier_permits: Semaphore,
}

impl<'r, S: VideoService> Fetcher<'r, S> {
    pub(super) fn new(
        gateway: &'r Gateway<'r, S>,
        ledger: &'r LockedBatch,
        account: &'r Account,
        downloads: &'r dyn Downloads,
    ) -> Self {
        Self {
            gateway,
            ledger,
            account,
            downloads,
            permits: Semaphore::new(AT_ONCE),
            earlier_permits: Semaphore::new(EARLIER_AT_ONCE),
        }
    }

    /// Fetches a video of this run. False if it could not be had.
    pub(super) async fn fetch_new(&self, wanted: &DownloadPlan, download: &Download) -> bool {
        self.fetch(wanted, download, &self.permits).await
    }

    /// Fetches a video of an earlier run. Those have permits of their own: a fresh link does not wait behind one that may be gone.
    pub(super) async fn fetch_earlier(&self, wanted: &DownloadPlan, download: &Download) -> bool {
        self.fetch(wanted, download, &self.earlier_permits).await
    }

    async fn fetch(&self, wanted: &DownloadPlan, download: &Download, permits: &Semaphore) -> bool {
        (self.gateway.emit)(RunEvent::ToFetch { job: download.job.clone() });
        match self.fetch_in_turn(wanted, download, permits).await {
            // If the run is being left, the next one fetches it.
            Ok(()) | Err(Unfetched::Left) => true,
            Err(Unfetched::Missed { message, is_local }) => {
                (self.gateway.emit)(RunEvent::NotFetched { job: download.job.clone(), message: message.clone() });
                if is_local {
                    // More would be paid for that there is no room for.
                    self.gateway.stop_because(StopReason::FilesFailed, message);
                }
                false
            }
        }
    }

    async fn fetch_in_turn(
        &self,
        wanted: &DownloadPlan,
        download: &Download,
        permits: &Semaphore,
    ) -> Result<(), Unfetched> {
        // It is never closed.
        let _permit = self.unless_leaving(permits.acquire()).await?;
        let occupants = wanted.occupants(&download.destination, download.attempt);
        let destination = download::Destination {
            folder: download.destination.folder.clone(),
            path: download.destination.path.clone(),
            is_version: download.destination.is_version,
            occupant: occupants.first().map(|(_, file)| file.clone()),
            task: download.task.id.clone(),
        };
        if let Some(known) = &download.known
            && let Some(path) = self.downloads.find(&destination, known).await
        {
            self.write_moved(download, known, path).await;
            return Ok(());
        }
        let (stored, link) = self.fetch_from_anywhere(download, &destination).await?;
        self.write_down(download, stored, link, &occupants).await;
        Ok(())
    }

    /// What comes of waiting, unless the run is left first.
    async fn unless_leaving<T>(&self, wait: impl Future<Output = T>) -> Result<T, Unfetched> {
        tokio::select! {
            biased;
            () = self.gateway.stop.leaving() => Err(Unfetched::Left),
            value = wait => Ok(value),
        }
    }

    /// The video, and the link that was good if it was not the one that was known.
    async fn fetch_from_anywhere(
        &self,
        download: &Download,
        destination: &download::Destination,
    ) -> Result<(Stored, Option<String>), Unfetched> {
        let contents: Vec<String> = download.task.each().map(|task| self.gateway.service.content_url(task)).collect();
        let mut told = Vec::new();
        if !contents.contains(&download.video_url) {
            match self.fetch_from(Link::Video(download.video_url.clone()), destination).await? {
                Ok(stored) => return Ok((stored, None)),
                Err(miss) => told.push(format!("its link: {miss}")),
            }
        }
        if download.account != *self.account {
            let owner = &download.account;
            told.push(format!(
                "only {owner}, which owns the task, can return a new URL; if this key belongs to the same account, pass \
                 `--same-account`"
            ));
            return Err(Unfetched::missed(&told));
        }
        match self.unless_leaving(self.ask_again(&download.task)).await? {
            Ok(url) if url != download.video_url && !contents.contains(&url) => {
                match self.fetch_from(Link::Video(url.clone()), destination).await? {
                    Ok(stored) => return Ok((stored, Some(url))),
                    Err(miss) => told.push(format!("a new link: {miss}")),
                }
            }
            Ok(_) => {}
            Err(message) => told.push(format!("asked for a new link: {message}")),
        }
        for content in contents {
            match self.fetch_from(Link::Content(content), destination).await? {
                // The content endpoint is not noted as the link: it answers to the key only.
                Ok(stored) => return Ok((stored, None)),
                Err(miss) => told.push(format!("the content endpoint: {miss}")),
            }
        }
        Err(Unfetched::missed(&told))
    }

    /// The video in its place, or what is wrong with this link if another may be better.
    async fn fetch_from(
        &self,
        link: Link,
        destination: &download::Destination,
    ) -> Result<Result<Stored, FetchError>, Unfetched> {
        let fetched = self.unless_leaving(self.downloads.fetch(&link, destination)).await?;
        let stored = match fetched {
            Ok(()) => self.downloads.store(destination).await,
            Err(error) => Err(error),
        };
        match stored {
            Err(error) if error.is_local() => Err(Unfetched::Missed { message: with_causes(&error), is_local: true }),
            stored => Ok(stored),
        }
    }

    /// Where the task says that its video is now. Asked again a few times, because nothing else can tell.
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

    /// The same by one of the task's names.
    async fn ask_by(&self, name: &TaskId, task: &TaskNames) -> Result<Answered, String> {
        let mut why = String::new();
        for _ in 0..MOST_POLLS {
            // Nobody asks during a pause. One that is longer than a link may take is left to the next run.
            while let Some(pause) = self.gateway.rate_limit.pending() {
                if pause > LONGEST_PAUSE {
                    return Err("the service asked everybody to wait".to_owned());
                }
                tokio::time::sleep(pause).await;
            }
            self.gateway.rate_limit.turn_to_poll().await;
            match self.gateway.service.poll(name).await {
                // The link of another task leads to another video.
                PollAnswer::Report(report) => match report.strange_name(task) {
                    None => return Ok(Answered::Link(report.video_url)),
                    Some(other) => why = format!("the service answered about the task {other}"),
                },
                PollAnswer::Missing(message) => return Ok(Answered::Denied(message)),
                PollAnswer::KeyRefused(error) => return Err(error.message),
                PollAnswer::Wait(wait, message) => {
                    match wait {
                        Some(wait) => self.gateway.rate_limit.pause(wait),
                        None => drop(self.gateway.rate_limit.slow_down()),
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

    /// The video is here, and another one took its path: another batch in the same folder, for example.
    async fn write_moved(&self, download: &Download, known: &VideoFile, path: OutputPath) {
        if let Err(error) = self.ledger.record(download.attempt, Event::Moved(path.clone())).await {
            return self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
        }
        self.tell_fetched(download, VideoFile { path, ..known.clone() });
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
        // What can't be written is done again by the next run, which finds the file in its place.
        for (attempt, event) in moved.chain(linked).chain([fetched]) {
            if let Err(error) = self.ledger.record(attempt, event).await {
                return self.gateway.stop_because(StopReason::LedgerFailed, with_causes(&error));
            }
        }
        self.tell_fetched(download, file);
    }

    fn tell_fetched(&self, download: &Download, file: VideoFile) {
        let Download { job, attempt, task, destination, .. } = download;
        let (job, task, folder) = (job.clone(), task.clone(), destination.folder.clone());
        (self.gateway.emit)(RunEvent::Fetched(Box::new(FetchedVideo { job, attempt: *attempt, task, folder, file })));
    }
}

/// What the service says of a task whose link is wanted.
enum Answered {
    /// Its link, if it names one.
    Link(Option<String>),
    /// That it does not know it, in these words.
    Denied(String),
}

/// Why a video is not here.
enum Unfetched {
    /// The run is being left.
    Left,
    /// It could not be had.
    Missed {
        message: String,
        /// Whether this machine is at fault.
        is_local: bool,
    },
}

impl Unfetched {
    fn missed(told: &[String]) -> Self {
        Self::Missed { message: told.join("; "), is_local: false }
    }
}
