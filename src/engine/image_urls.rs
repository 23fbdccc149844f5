//! URLs for local images, requested once in a run, before the first submission that needs them.
//!
//! A job without a URL for its image is not sent, has no intent, and costs nothing. The request's identity doesn't
//! depend on the URL ([`Request::with_images_at`](crate::domain::Request::with_images_at)).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::{OnceCell, Semaphore};

use crate::domain::{Job, LocalImage, with_causes};
use crate::hooks::AssetCommand;

/// The maximum number of concurrent asset commands.
const AT_ONCE: usize = 4;
/// The failures in a row after which no asset command starts: each may run to its time limit.
const MAX_FAILED: usize = 3;

/// The URL of an image, or the reason that it has none.
type Answer = Result<String, String>;

/// The image URLs of a run.
pub(super) struct ImageUrls<'r> {
    command: Option<&'r AssetCommand>,
    /// By the digest of the image.
    asked: Mutex<HashMap<String, Arc<OnceCell<Answer>>>>,
    permits: Semaphore,
    /// The failures of the command in a row.
    failed: AtomicUsize,
}

impl<'r> ImageUrls<'r> {
    pub(super) fn new(command: Option<&'r AssetCommand>) -> Self {
        let (asked, permits, failed) = (Mutex::default(), Semaphore::new(AT_ONCE), AtomicUsize::new(0));
        Self { command, asked, permits, failed }
    }

    /// Returns the job with a URL for each local image, or the reason that one has none.
    pub(super) async fn sendable(&self, job: &Arc<Job>) -> Result<Arc<Job>, String> {
        if job.spec.local_images.is_empty() {
            return Ok(Arc::clone(job));
        }
        let urls = job.spec.local_images.iter().map(|image| self.url(image));
        let urls = futures::future::try_join_all(urls).await?;
        let mut sent = Job::clone(job);
        sent.purchase.request = job.purchase.request.with_images_at(&job.spec, &urls);
        Ok(Arc::new(sent))
    }

    async fn url(&self, image: &LocalImage) -> Answer {
        let asked = {
            let mut asked = self.asked.lock();
            Arc::clone(asked.entry(image.sha256.clone()).or_default())
        };
        asked.get_or_init(|| self.ask(image)).await.clone()
    }

    async fn ask(&self, image: &LocalImage) -> Answer {
        let Some(command) = self.command else { return Err("`--asset-command` is not set".to_owned()) };
        // The semaphore is never closed.
        let _permit = self.permits.acquire().await;
        if self.failed.load(Ordering::Relaxed) >= MAX_FAILED {
            return Err(format!("it was not asked for: the asset command failed {MAX_FAILED} times in a row"));
        }
        match command.address(image).await {
            Ok(address) => {
                self.failed.store(0, Ordering::Relaxed);
                Ok(address)
            }
            Err(error) => {
                // A fault of one image says nothing about others.
                self.failed.fetch_add(usize::from(error.is_of_the_command()), Ordering::Relaxed);
                Err(with_causes(&error))
            }
        }
    }
}
