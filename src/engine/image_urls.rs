//! URLs for local images, requested once in a run, before the first submission that needs them.
//!
//! A job without a URL for its image is not sent, has no intent, and costs nothing. The request's identity doesn't
//! depend on the URL ([`Request::with_images_at`](crate::domain::Request::with_images_at)).

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::{OnceCell, Semaphore};

use super::gateway::Gateway;
use super::stop::StopReason;
use crate::domain::{Job, LocalImage, NoticeCode, with_causes};
use crate::hooks::AssetCommand;
use crate::ledger::LedgerError;

/// The maximum number of concurrent asset commands.
const AT_ONCE: usize = 4;
/// The failures in a row after which no asset command starts: each may run to its time limit.
const MOST_FAILED: usize = 3;

/// The URL of an image, or the reason that it has none.
type Answer = Result<String, String>;

/// The image URLs of a run.
pub(super) struct ImageUrls<'r, S> {
    gateway: &'r Gateway<'r, S>,
    command: Option<&'r AssetCommand>,
    /// By the digest of the image.
    asked: Mutex<HashMap<String, Arc<OnceCell<Answer>>>>,
    permits: Semaphore,
    /// The failures of the command in a row.
    failed: AtomicUsize,
}

impl<'r, S> ImageUrls<'r, S> {
    pub(super) fn new(gateway: &'r Gateway<'r, S>, command: Option<&'r AssetCommand>) -> Self {
        let (asked, permits, failed) = (Mutex::default(), Semaphore::new(AT_ONCE), AtomicUsize::new(0));
        Self { gateway, command, asked, permits, failed }
    }

    /// Returns the job with a URL for each local image, or the reason that one has none.
    pub(super) async fn sendable(&self, job: &Arc<Job>) -> Result<Arc<Job>, String> {
        if job.spec.local_images.is_empty() {
            return Ok(Arc::clone(job));
        }
        let urls = job.spec.local_images.iter().map(|image| self.url(image));
        let urls = futures::future::try_join_all(urls).await?;
        Ok(Arc::new(Job { request: job.request.with_images_at(&job.spec, &urls), ..(**job).clone() }))
    }

    async fn url(&self, image: &LocalImage) -> Answer {
        let asked = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(asked.entry(image.sha256.clone()).or_default())
        };
        asked.get_or_init(|| self.ask(image)).await.clone()
    }

    /// Forgets all URLs before another plan: hours may have passed.
    pub(super) fn forget(&self) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.failed.store(0, Ordering::Relaxed);
    }

    async fn ask(&self, image: &LocalImage) -> Answer {
        let Some(command) = self.command else { return Err("`--asset-command` is not set".to_owned()) };
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        match self.kept(command, image).await {
            Ok(Some(address)) => return Ok(address),
            Ok(None) => {}
            Err(error) => {
                let message = with_causes(&error);
                self.gateway.stop_because(StopReason::LedgerFailed, message.clone());
                return Err(message);
            }
        }
        if self.failed.load(Ordering::Relaxed) >= MOST_FAILED {
            return Err(format!("it was not asked for: the asset command failed {MOST_FAILED} times in a row"));
        }
        match command.address(image).await {
            Ok(address) => {
                self.failed.store(0, Ordering::Relaxed);
                self.keep(command, image, &address).await;
                Ok(address)
            }
            Err(error) => {
                // A fault of one image says nothing about others.
                self.failed.fetch_add(usize::from(error.is_of_the_command()), Ordering::Relaxed);
                Err(with_causes(&error))
            }
        }
    }

    /// Returns the URL from an earlier run, if it is still valid.
    async fn kept(&self, command: &AssetCommand, image: &LocalImage) -> Result<Option<String>, LedgerError> {
        let Some(since) = command.ttl.and_then(|ttl| Timestamp::now().checked_sub(ttl).ok()) else { return Ok(None) };
        self.gateway.ledger.image_url(&image.sha256, &command.program.fingerprint(), since).await
    }

    /// Records a URL for later runs. Without a record, they request it again.
    async fn keep(&self, command: &AssetCommand, image: &LocalImage, address: &str) {
        if command.ttl.is_none() {
            return;
        }
        let kept = self.gateway.ledger.keep_image_url(&image.sha256, &command.program.fingerprint(), address).await;
        if let Err(error) = kept {
            tracing::warn!(
                code = NoticeCode::AssetUrlNotKept.code(),
                "can't record the URL of an image: {}",
                with_causes(&error)
            );
        }
    }
}
