//! Fetches videos over HTTP, one link into one destination at a time.

use std::path::PathBuf;
use std::sync::Arc;

use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::hosts::HostPolicy;
use super::interface::{Destination, Downloads, FetchError, Limits, Link, Stored};
use super::interface::{Get, Transport};
use super::{part, storing, stream};
use crate::domain::{OutputPath, VideoFile};
use crate::files::on_a_thread;

/// Fetches videos over HTTP.
pub struct Downloader {
    transport: Transport,
    directory: PathBuf,
    /// Names are chosen and taken by one at a time.
    naming: Arc<Mutex<()>>,
}

impl Downloader {
    /// Fetches into this directory.
    pub fn new(get: Get, hosts: HostPolicy, directory: PathBuf, limits: Limits) -> Self {
        let transport = Transport { get, hosts, limits };
        Self { transport, directory, naming: Arc::default() }
    }

    fn directory_of(&self, destination: &Destination) -> PathBuf {
        destination.directory.as_deref().unwrap_or(&self.directory).to_owned()
    }
}

impl Downloads for Downloader {
    fn fetch<'a>(&'a self, link: &'a Link, destination: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>> {
        Box::pin(async move {
            let (directory, wanted) = (self.directory_of(destination), destination.clone());
            let target = aside(move || storing::prepare(&directory, &wanted)).await?;
            if target.whole.exists() {
                return Ok(());
            }
            let mut part = part::Part::open(&target.part).await.map_err(FetchError::local(&target.part))?;
            let filled = stream::fill(&self.transport, link, &mut part).await;
            if filled.is_err() && part.length() == 0 {
                // This link failed, and nothing of it stays.
                return part.forget().await.map_err(FetchError::local(&target.part)).and(filled);
            }
            // Also of a part that is not whole: nothing may be written to it later, when another link has begun it anew.
            let closed = part.close().await.map_err(FetchError::local(&target.part));
            filled.and(closed)
        })
    }

    fn find<'a>(&'a self, destination: &'a Destination, known: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>> {
        Box::pin(async move {
            let (directory, wanted, known) = (self.directory_of(destination), destination.clone(), known.clone());
            // A video that can't be checked is downloaded, with its own error.
            aside(move || storing::find(&storing::prepare(&directory, &wanted)?, &known)).await.unwrap_or(None)
        })
    }

    fn store<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>> {
        Box::pin(async move {
            let (directory, wanted, naming) =
                (self.directory_of(destination), destination.clone(), Arc::clone(&self.naming));
            aside(move || storing::store(&storing::prepare(&directory, &wanted)?, &naming)).await
        })
    }
}

/// Does what waits for the disk beside everything else.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FetchError> + Send + 'static,
) -> Result<T, FetchError> {
    let done = on_a_thread(work).await;
    done.unwrap_or_else(|error| Err(FetchError::Transient(format!("can't start its thread: {error}"))))
}
