//! Fetches one video safely.
//!
//! # What it promises
//!
//! - **Whole or not at all.** A video is streamed into a hidden file beside its place, checked (length, MP4 signature, no
//!   box cut short), hashed, synced, and renamed. What carries a video's name was once whole. One that is whole and can't be put
//!   into its place, because something is in the way, waits beside it under a hidden name and is not fetched again.
//! - **Nothing is lost to it.** A file that is in the way is kept under a version of its name, `waves~1.mp4`, unless the
//!   same bytes are kept there already.
//! - **Nothing leaves the folder.** A path is checked when the manifest is read ([`crate::domain::OutputPath`]); here, no
//!   folder or file on the way may be a link. Somebody who swaps a folder for a link while a file is being placed may write
//!   there without shotlist, too, and is not guarded against.
//! - **The key goes home only.** Each request of a journey, redirects included, asks anew whether its address is the
//!   service's own origin. From https no redirect leads to http.
//! - **No link leads into the neighbourhood** of this machine, where a service far away has no business ([`HostPolicy`]).
//! - **It ends.** Redirects, silence, drips, length, tries and time are all bounded by [`Limits`], and a host where nothing works
//!   out is given less of them.
//! - **It resumes.** What arrived is kept and asked for no second time, if the server named a version of the file that it
//!   can be asked for (`ETag`, `Last-Modified`; RFC 9110 §13.1.5). Of a process that was killed, what had been synced.
//!
//! Where a link comes from when one is no longer good is decided by the engine: this room knows one link and one place.

mod content;
mod hosts;
mod journey;
mod part;
mod patience;
mod place;
mod sound;
mod stream;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, Url};

use crate::domain::{OutputPath, TaskId, VideoFile};

pub use hosts::HostPolicy;
pub use place::is_whole;

/// Where a video can be had.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Link {
    /// The video itself.
    Video(String),
    /// The service's content endpoint, whose answer the interface does not show (§4): the video, a redirect to it, or JSON
    /// that holds its address.
    Content(String),
}

impl Link {
    fn address(&self) -> &str {
        match self {
            Self::Video(url) | Self::Content(url) => url,
        }
    }
}

/// Where a video goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The path inside the output folder.
    pub path: OutputPath,
    /// Only a version of that path: the path itself belongs to another video.
    pub is_version: bool,
    /// What the ledger says is at that path now, of an earlier attempt.
    pub occupant: Option<VideoFile>,
    /// Whose video it is; two tasks never share a part.
    pub task: TaskId,
}

/// A video that is in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The video.
    pub file: VideoFile,
    /// Where the occupant is now, if it had to go.
    pub displaced: Option<OutputPath>,
}

/// Fetches videos into a folder.
pub trait Downloads: Sync {
    /// Fetches a video, to beside its place. May be given up at any moment: what arrived is kept for another time.
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>>;

    /// Where a video that was here once is kept now, if another one took its path.
    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>>;

    /// Puts a video that was fetched into its place. Short, and not to be given up: what has its name is to be written down.
    fn place<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>>;
}

/// How much is endured.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest video, in bytes. Twelve seconds in 720p are some ten megabytes.
    pub longest: u64,
    /// How long a server may say nothing.
    pub silence: Duration,
    /// In each span of this length at least [`Self::least`] bytes must come.
    pub window: Duration,
    /// See there.
    pub least: u64,
    /// How long one link may take altogether.
    pub whole: Duration,
    /// How often a link is tried in a row without getting further.
    pub tries: u32,
    /// The pause before the second try; it doubles from there.
    pub first_pause: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            longest: 2 << 30,
            silence: Duration::from_secs(30),
            window: Duration::from_mins(1),
            least: 64 << 10,
            whole: Duration::from_mins(30),
            tries: 5,
            first_pause: Duration::from_secs(1),
        }
    }
}

/// Why a video was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server refuses this link, for good or until it is asked for anew.
    #[error("HTTP {0}")]
    Refused(u16),
    /// It did not work out, though it was tried again and again.
    #[error("{0}")]
    Trouble(String),
    /// Something else came.
    #[error("what came is no whole MP4 video: {0}")]
    NotVideo(String),
    /// It does not end.
    #[error("it is longer than {0} bytes, which no video of this service is")]
    TooLong(u64),
    /// The way leads where shotlist does not go.
    #[error("{0}")]
    Astray(String),
    /// This machine could not take it.
    #[error("{} can't be written", path.display())]
    Local {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl FetchError {
    /// Whether this machine, and not the network, is at fault: no other link mends that.
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local { .. })
    }

    fn local(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Local { path: path.to_owned(), source }
    }
}

/// Begins a GET of an address, with the key if it is the service's own. What sends it follows no redirect, and resolves names
/// by the same policy.
pub type Get = Box<dyn Fn(&Url) -> RequestBuilder + Send + Sync>;

/// Fetches videos over HTTP.
pub struct Downloader {
    get: Get,
    hosts: HostPolicy,
    folder: PathBuf,
    limits: Limits,
    patience: patience::Patience,
    /// Names are chosen and taken by one at a time.
    naming: Arc<Mutex<()>>,
}

impl Downloader {
    /// Into this folder.
    #[must_use]
    pub fn new(get: Get, hosts: HostPolicy, folder: PathBuf, limits: Limits) -> Self {
        Self { get, hosts, folder, limits, patience: patience::Patience::default(), naming: Arc::default() }
    }
}

impl Downloads for Downloader {
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>> {
        Box::pin(async move {
            let (folder, wanted) = (self.folder.clone(), destination.clone());
            let target = on_a_thread(move || place::prepare(&folder, &wanted)).await?;
            if target.whole.exists() {
                return Ok(());
            }
            let mut part = part::Part::open(&target.part).await.map_err(FetchError::local(&target.part))?;
            let filled = stream::fill(self, link, &mut part).await;
            if filled.is_err() && part.length() == 0 {
                // Nothing came of this link, and nothing of it stays.
                return part.forget().await.map_err(FetchError::local(&target.part)).and(filled);
            }
            // Also of a part that is not whole: nothing may be written to it later, when another link has begun it anew.
            let closed = part.close().await.map_err(FetchError::local(&target.part));
            filled.and(closed)
        })
    }

    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>> {
        Box::pin(async move {
            let (folder, wanted, known) = (self.folder.clone(), destination.clone(), known.clone());
            // What can't be looked at is fetched, and told then.
            on_a_thread(move || place::find(&place::prepare(&folder, &wanted)?, &known)).await.unwrap_or(None)
        })
    }

    fn place<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>> {
        Box::pin(async move {
            let (folder, wanted, naming) = (self.folder.clone(), destination.clone(), Arc::clone(&self.naming));
            on_a_thread(move || place::place(&place::prepare(&folder, &wanted)?, &naming)).await
        })
    }
}

/// Does what waits for the disk beside everything else.
async fn on_a_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(FetchError::Trouble(format!("its thread ended: {error}"))))
}
