//! Brings videos home, beside the run: a few at once, and never with a slot in hand.
//!
//! A link expires. So the video is asked for as soon as its task is completed, at the address that the task gave; if that is
//! no longer good, the task is asked for another one; and if that is no good either, the content endpoint is. All of it only
//! reads: whatever goes wrong here, nothing is generated again.

use std::time::Duration;

use tokio::sync::Semaphore;

use super::event::RunEvent;
use super::line::Line;
use super::shelf::{Errand, Place, Shelf};
use super::stop::StopReason;
use super::submit::with_cause;
use crate::domain::{Account, AttemptId, JobId, OutputPath, TaskId, TaskNames, VideoFile};
use crate::download::{FetchError, Link, Placed, Spot, Videos};
use crate::ledger::{Event, Ledger};
use crate::service::{Look, VideoService};

/// The most downloads at once: of this run's videos, and of earlier ones.
const AT_ONCE: usize = 4;
const EARLIER_AT_ONCE: usize = 2;
/// How often a task is asked for a new link, and the pause in between.
const MOST_LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_secs(2);
/// The longest pause that is waited out for that.
const LONGEST_PAUSE: Duration = Duration::from_mins(10);

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
    back_doors: Semaphore,
}

impl<'r, S: VideoService, L: Ledger> Gatherer<'r, S, L> {
    pub fn new(line: &'r Line<'r, S>, ledger: &'r L, account: &'r Account, keeping: Keeping<'r>) -> Self {
        Self {
            line,
            ledger,
            account,
            keeping,
            doors: Semaphore::new(AT_ONCE),
            back_doors: Semaphore::new(EARLIER_AT_ONCE),
        }
    }

    /// Where the video of a task goes that was at the service before the run.
    pub fn shelf(&self) -> &'r Shelf {
        self.keeping.shelf
    }

    /// Fetches a video of this run's account. False if it could not be had.
    pub async fn bring(
        &self,
        job: &JobId,
        attempt: AttemptId,
        task: TaskNames,
        video_url: String,
        place: Place,
    ) -> bool {
        let account = self.account.clone();
        let errand = Errand { job: job.clone(), attempt, task, account, video_url, place, known: None };
        self.fetch(&errand, &self.doors).await
    }

    /// Fetches a video of an earlier run. Those have doors of their own: a fresh link does not wait behind one that may be gone.
    pub async fn run_errand(&self, errand: &Errand) -> bool {
        self.fetch(errand, &self.back_doors).await
    }

    async fn fetch(&self, errand: &Errand, doors: &Semaphore) -> bool {
        (self.line.tell)(RunEvent::ToFetch { job: errand.job.clone() });
        match self.fetch_in_turn(errand, doors).await {
            // If the run is being left, the next one fetches it.
            Ok(()) | Err(Unfetched::Left) => true,
            Err(Unfetched::Missed { message, is_local }) => {
                (self.line.tell)(RunEvent::NotFetched { job: errand.job.clone(), message: message.clone() });
                if is_local {
                    // More would be paid for that there is no room for.
                    self.line.stop_because(StopReason::FilesFailed, message);
                }
                false
            }
        }
    }

    async fn fetch_in_turn(&self, errand: &Errand, doors: &Semaphore) -> Result<(), Unfetched> {
        // It is never closed.
        let _door = self.unless_leaving(doors.acquire()).await?;
        let occupants = self.keeping.shelf.occupants(&errand.place, errand.attempt);
        let spot = Spot {
            path: errand.place.path.clone(),
            is_version: errand.place.is_version,
            occupant: occupants.first().map(|(_, file)| file.clone()),
            task: errand.task.id.clone(),
        };
        if let Some(known) = &errand.known
            && let Some(path) = self.keeping.videos.find(&spot, known).await
        {
            self.write_moved(errand, known, path).await;
            return Ok(());
        }
        let (placed, link) = self.fetch_from_anywhere(errand, &spot).await?;
        self.write_down(errand, placed, link, &occupants).await;
        Ok(())
    }

    /// What comes of waiting, unless the run is left first.
    async fn unless_leaving<T>(&self, wait: impl Future<Output = T>) -> Result<T, Unfetched> {
        tokio::select! {
            biased;
            () = self.line.stop.leaving() => Err(Unfetched::Left),
            value = wait => Ok(value),
        }
    }

    /// The video, and the link that was good if it was not the one that was known.
    async fn fetch_from_anywhere(&self, errand: &Errand, spot: &Spot) -> Result<(Placed, Option<String>), Unfetched> {
        let contents: Vec<String> = errand.task.each().map(|task| self.line.service.content_url(task)).collect();
        let mut told = Vec::new();
        if !contents.contains(&errand.video_url) {
            match self.fetch_from(Link::Video(errand.video_url.clone()), spot).await? {
                Ok(placed) => return Ok((placed, None)),
                Err(miss) => told.push(format!("its link: {miss}")),
            }
        }
        if errand.account != *self.account {
            let owner = &errand.account;
            told.push(format!(
                "a new link can be had from {owner} only, whose task it is; if this key belongs to the same account, say so \
                 with --same-account"
            ));
            return Err(Unfetched::missed(&told));
        }
        match self.unless_leaving(self.ask_again(&errand.task)).await? {
            Ok(url) if url != errand.video_url && !contents.contains(&url) => {
                match self.fetch_from(Link::Video(url.clone()), spot).await? {
                    Ok(placed) => return Ok((placed, Some(url))),
                    Err(miss) => told.push(format!("a new link: {miss}")),
                }
            }
            Ok(_) => {}
            Err(message) => told.push(format!("asked for a new link: {message}")),
        }
        for content in contents {
            match self.fetch_from(Link::Content(content), spot).await? {
                // The content endpoint is not noted as the link: it answers to the key only.
                Ok(placed) => return Ok((placed, None)),
                Err(miss) => told.push(format!("the content endpoint: {miss}")),
            }
        }
        Err(Unfetched::missed(&told))
    }

    /// The video in its place, or what is wrong with this link if another may be better.
    async fn fetch_from(&self, link: Link, spot: &Spot) -> Result<Result<Placed, FetchError>, Unfetched> {
        let fetched = self.unless_leaving(self.keeping.videos.fetch(&link, spot)).await?;
        let placed = match fetched {
            Ok(()) => self.keeping.videos.place(spot).await,
            Err(error) => Err(error),
        };
        match placed {
            Err(error) if error.is_local() => Err(Unfetched::Missed { message: with_cause(&error), is_local: true }),
            placed => Ok(placed),
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
        let mut trouble = String::new();
        for _ in 0..MOST_LOOKS {
            // Nobody asks during a pause. One that is longer than a link may take is left to the next run.
            while let Some(pause) = self.line.pace.pending() {
                if pause > LONGEST_PAUSE {
                    return Err("the service asked everybody to wait".to_owned());
                }
                tokio::time::sleep(pause).await;
            }
            self.line.pace.turn_to_look().await;
            match self.line.service.look(name).await {
                // The link of another task leads to another video.
                Look::Report(report) => match report.strange_name(task) {
                    None => return Ok(Answered::Link(report.video_url)),
                    Some(other) => trouble = format!("the service answered about the task {other}"),
                },
                Look::Missing(message) => return Ok(Answered::Denied(message)),
                Look::KeyRefused(error) => return Err(error.message),
                Look::Wait(wait, message) => {
                    match wait {
                        Some(wait) => self.line.pace.pause(wait),
                        None => drop(self.line.pace.slow_down()),
                    }
                    trouble = message;
                }
                Look::Trouble(message) => {
                    tokio::time::sleep(BETWEEN_LOOKS).await;
                    trouble = message;
                }
            }
        }
        Err(trouble)
    }

    /// The video is here, and another one took its path: another batch in the same folder, for example.
    async fn write_moved(&self, errand: &Errand, known: &VideoFile, path: OutputPath) {
        if let Err(error) = self.ledger.record(errand.attempt, Event::Moved(path.clone())).await {
            return self.line.stop_because(StopReason::LedgerFailed, with_cause(&error));
        }
        (self.line.tell)(RunEvent::Fetched { job: errand.job.clone(), path, bytes: known.bytes });
    }

    async fn write_down(
        &self,
        errand: &Errand,
        placed: Placed,
        link: Option<String>,
        occupants: &[&(AttemptId, VideoFile)],
    ) {
        let Placed { file, displaced } = placed;
        let (path, bytes) = (file.path.clone(), file.bytes);
        let moved = displaced
            .into_iter()
            .flat_map(|path| occupants.iter().map(move |(attempt, _)| (*attempt, Event::Moved(path.clone()))));
        let linked = link.map(|video_url| (errand.attempt, Event::Relinked { video_url }));
        let fetched = (errand.attempt, Event::Fetched(file));
        // What can't be written is done again by the next run, which finds the file in its place.
        for (attempt, event) in moved.chain(linked).chain([fetched]) {
            if let Err(error) = self.ledger.record(attempt, event).await {
                return self.line.stop_because(StopReason::LedgerFailed, with_cause(&error));
            }
        }
        (self.line.tell)(RunEvent::Fetched { job: errand.job.clone(), path, bytes });
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
