//! Brings videos home, beside the run: a few at once, and never with a slot in hand.
//!
//! A link expires. So the video is asked for as soon as its task is completed, at the address that the task gave; if that is
//! no longer good, the task is asked for another one; and if that is no good either, the content endpoint is. All of it only
//! reads: whatever goes wrong here, nothing is generated again.

use tokio::sync::Semaphore;

use super::event::RunEvent;
use super::line::Line;
use super::shelf::{Errand, Place, Shelf};
use super::stop::StopReason;
use super::submit::with_cause;
use crate::domain::{Account, AttemptId, JobId, TaskId};
use crate::download::{FetchError, Link, Placed, Spot, Videos};
use crate::ledger::{Event, Ledger};
use crate::service::{Look, VideoService};

/// The most downloads at once.
const AT_ONCE: usize = 4;

/// What it takes to keep videos.
#[derive(Clone, Copy)]
pub struct Keeping<'e> {
    /// Fetches them.
    pub videos: &'e dyn Videos,
    /// Where they go.
    pub shelf: &'e Shelf,
}

/// Fetches the videos of a run.
pub struct Gatherer<'r, S, L> {
    line: &'r Line<'r, S>,
    ledger: &'r L,
    account: &'r Account,
    keeping: Keeping<'r>,
    doors: Semaphore,
}

impl<'r, S: VideoService, L: Ledger> Gatherer<'r, S, L> {
    pub fn new(line: &'r Line<'r, S>, ledger: &'r L, account: &'r Account, keeping: Keeping<'r>) -> Self {
        Self { line, ledger, account, keeping, doors: Semaphore::new(AT_ONCE) }
    }

    /// Where the video of a task goes that was at the service before the run.
    pub fn shelf(&self) -> &'r Shelf {
        self.keeping.shelf
    }

    /// Fetches a video of this run's account.
    pub async fn bring(&self, job: &JobId, attempt: AttemptId, task: TaskId, video_url: String, place: Place) -> bool {
        let account = self.account.clone();
        self.fetch(&Errand { job: job.clone(), attempt, task, account, video_url, place }).await
    }

    /// Fetches a video, unless the run is being left: then the next one does. False if it could not be had.
    pub async fn fetch(&self, errand: &Errand) -> bool {
        tokio::select! {
            biased;
            () = self.line.stop.leaving() => true,
            is_here = self.fetch_in_turn(errand) => is_here,
        }
    }

    async fn fetch_in_turn(&self, errand: &Errand) -> bool {
        (self.line.tell)(RunEvent::ToFetch { job: errand.job.clone() });
        // It is never closed.
        let _door = self.doors.acquire().await;
        let occupant = self.keeping.shelf.occupant(&errand.place, errand.attempt);
        let spot = Spot {
            path: errand.place.path.clone(),
            is_version: errand.place.is_version,
            occupant: occupant.map(|(_, file)| file.clone()),
            task: errand.task.clone(),
        };
        match self.fetch_from_anywhere(errand, &spot).await {
            Ok((placed, link)) => {
                self.write_down(errand, placed, link, occupant.map(|(attempt, _)| *attempt)).await;
                true
            }
            Err(Unfetched { message, is_local }) => {
                (self.line.tell)(RunEvent::NotFetched { job: errand.job.clone(), message: message.clone() });
                if is_local {
                    // More would be paid for that there is no room for.
                    self.line.stop_because(StopReason::FilesFailed, message);
                }
                false
            }
        }
    }

    /// The video, and the link that was good if it was not the one that was known.
    async fn fetch_from_anywhere(&self, errand: &Errand, spot: &Spot) -> Result<(Placed, Option<String>), Unfetched> {
        let content = self.line.service.content_url(&errand.task);
        let is_content = errand.video_url == content;
        let mut misses = Misses::default();
        if !is_content {
            match self.keeping.videos.fetch(&Link::Video(errand.video_url.clone()), spot).await {
                Ok(placed) => return Ok((placed, None)),
                Err(error) => misses.note("its link", &error)?,
            }
        }
        if errand.account != *self.account {
            misses.told.push(format!("a new link can be had from {} only", errand.account));
            return Err(misses.into());
        }
        match self.ask_again(&errand.task).await {
            Ok(url) if url != errand.video_url && url != content => {
                match self.keeping.videos.fetch(&Link::Video(url.clone()), spot).await {
                    Ok(placed) => return Ok((placed, Some(url))),
                    Err(error) => misses.note("a new link", &error)?,
                }
            }
            Ok(_) => {}
            Err(message) => misses.told.push(format!("asked for a new link: {message}")),
        }
        match self.keeping.videos.fetch(&Link::Content(content.clone()), spot).await {
            // The link has done its duty; a good one that answers to everybody is not known.
            Ok(placed) => Ok((placed, None)),
            Err(error) => {
                misses.note("the content endpoint", &error)?;
                Err(misses.into())
            }
        }
    }

    /// Where the task says that its video is now.
    async fn ask_again(&self, task: &TaskId) -> Result<String, String> {
        self.line.pace.turn_to_look().await;
        match self.line.service.look(task).await {
            Look::Report(report) => report.video_url.ok_or_else(|| "the task names none".to_owned()),
            Look::Missing => Err("the service does not know the task".to_owned()),
            Look::KeyRefused(error) => Err(error.message),
            Look::Wait(_, message) | Look::Trouble(message) => Err(message),
        }
    }

    async fn write_down(&self, errand: &Errand, placed: Placed, link: Option<String>, occupant: Option<AttemptId>) {
        let Placed { file, displaced } = placed;
        let (path, bytes) = (file.path.clone(), file.bytes);
        let moved = occupant.zip(displaced).map(|(attempt, path)| (attempt, Event::Moved(path)));
        let linked = link.map(|video_url| (errand.attempt, Event::Relinked { video_url }));
        let fetched = (errand.attempt, Event::Fetched(file));
        // What can't be written is done again by the next run, which finds the file in its place.
        for (attempt, event) in moved.into_iter().chain(linked).chain([fetched]) {
            if let Err(error) = self.ledger.record(attempt, event).await {
                return self.line.stop_because(StopReason::LedgerFailed, with_cause(&error));
            }
        }
        (self.line.tell)(RunEvent::Fetched { job: errand.job.clone(), path, bytes });
    }
}

/// Why a video is not here.
struct Unfetched {
    message: String,
    /// Whether this machine is at fault.
    is_local: bool,
}

/// What went wrong at each link.
#[derive(Default)]
struct Misses {
    told: Vec<String>,
}

impl Misses {
    /// Notes what is wrong with a link, if another may be better.
    fn note(&mut self, link: &str, error: &FetchError) -> Result<(), Unfetched> {
        if error.is_local() {
            return Err(Unfetched { message: with_cause(error), is_local: true });
        }
        self.told.push(format!("{link}: {error}"));
        Ok(())
    }
}

impl From<Misses> for Unfetched {
    fn from(misses: Misses) -> Self {
        Self { message: misses.told.join("; "), is_local: false }
    }
}
