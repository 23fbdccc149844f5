//! Requests for a download, and their outcomes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::{RequestBuilder, Url};

use super::hosts::HostPolicy;
use crate::domain::{OutputPath, TaskId, VideoFile};

/// The source of a video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Link {
    /// The video itself.
    Video(String),
    /// The service's content endpoint, whose answer the interface does not show (§4): the video, a redirect to it, or JSON
    /// that holds its address.
    Content(String),
}

/// The path of a video.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Destination {
    /// The output directory, if it is another one than usual.
    pub directory: Option<Arc<Path>>,
    /// The path inside the output directory.
    pub path: OutputPath,
    /// Only a version of that path: the path itself belongs to another video.
    pub is_version: bool,
    /// The video of an earlier attempt at that path, by the ledger.
    pub occupant: Option<VideoFile>,
    /// The task of the video; two tasks never share a part.
    pub task: TaskId,
}

/// A video that is in its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The video.
    pub file: VideoFile,
    /// The new path of the occupant, if it was moved.
    pub displaced: Option<OutputPath>,
}

/// Fetches videos into a directory.
pub trait Downloads: Sync {
    /// Fetches a video, to beside its place. May be given up at any moment: what arrived is kept for another time.
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>>;

    /// The new path of a downloaded video, if another video has its path now.
    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>>;

    /// Puts a video that was fetched into its place. Short, and not to be given up: what has its name is to be written down.
    fn store<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>>;
}

/// The limits of a download.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The longest video, in bytes. Twelve seconds in 720p are some ten megabytes.
    pub longest: u64,
    /// The longest silence of a server.
    pub silence: Duration,
    /// The span in which at least [`Self::least`] bytes must come.
    pub window: Duration,
    /// The bytes that must come in each [`Self::window`].
    pub least: u64,
    /// The longest time for one link.
    pub whole: Duration,
    /// The number of tries of a link in a row without progress.
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

/// The reason why a video was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The server refuses this link, for good or until it is asked for anew.
    #[error("HTTP {0}")]
    Refused(u16),
    /// It did not work out, though it was tried again and again.
    #[error("{0}")]
    Transient(String),
    /// Something else came.
    #[error("the download is not a complete MP4 video: {0}")]
    NotVideo(String),
    /// It does not end.
    #[error("must have at most {0} bytes")]
    TooLong(u64),
    /// The way leads where shotlist does not go.
    #[error("{0}")]
    BadRedirect(String),
    /// This machine could not take it.
    #[error("can't write `{}`", path.display())]
    Local {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl FetchError {
    /// Returns whether this machine, and not the network, is at fault: another link doesn't help.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local { .. })
    }

    pub(super) fn local(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Local { path: path.to_owned(), source }
    }
}

/// Begins a GET of a URL, with the key if that may go there; the second argument says whether another host redirected to it. What sends it
/// follows no redirect, and resolves names by the same policy.
pub type Get = Box<dyn Fn(&Url, bool) -> RequestBuilder + Send + Sync>;

pub(super) struct Transport {
    pub get: Get,
    pub hosts: HostPolicy,
    pub limits: Limits,
}
