//! Downloads during a run: few in parallel, and without a slot.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use shotlist::domain::{AttemptState, History, OutputPath, VideoFile};
use shotlist::download::{Destination, Downloads, FetchError, Link, Stored};
use shotlist::engine::{Outcome, RunEvent, Settings, Stop, StopReason};
use shotlist::plan::DownloadPlan;
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, run_with_downloads};
use crate::support::plans::{SECOND, plan};

/// Downloads of an hour each, and the largest number of parallel ones.
#[derive(Default)]
struct Hours {
    now: AtomicUsize,
    most: Mutex<usize>,
}

impl Downloads for Hours {
    fn fetch<'a>(&'a self, _: &'a Link, _: &'a Destination) -> BoxFuture<'a, Result<(), FetchError>> {
        Box::pin(async move {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            {
                let mut most = self.most.lock().expect("no panic");
                *most = now.max(*most);
            }
            tokio::time::sleep(3600 * SECOND).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn find<'a>(&'a self, _: &'a Destination, _: &'a VideoFile) -> BoxFuture<'a, Option<OutputPath>> {
        Box::pin(std::future::ready(None))
    }

    fn store<'a>(&'a self, destination: &'a Destination) -> BoxFuture<'a, Result<Stored, FetchError>> {
        let file = VideoFile { path: destination.path.clone(), sha256: "0".repeat(64), bytes: 1, footage: None };
        Box::pin(std::future::ready(Ok(Stored { file, displaced: None })))
    }
}

#[tokio::test(start_paused = true)]
async fn downloads_hold_no_slot_and_are_bounded() {
    let (service, videos) = (FakeService::taking(|_| 60 * SECOND), Hours::default());
    let settings = Settings { concurrency: 2, ..Settings::default() };
    let (ledger, stop, start) = (OwnBatch::default(), Stop::default(), Instant::now());
    let mut plan = plan(&jobs(12), &History::default(), None);
    plan.downloads = Some(DownloadPlan::default());
    let (outcome, events) = run_with_downloads(&service, &ledger, &settings, &stop, &plan, Some(&videos)).await;
    let last = service.submissions().last().expect("a submission").0;
    assert!(last - start < 3600 * SECOND, "the last of twelve was submitted after {:?}", last - start);
    assert_eq!(*videos.most.lock().expect("no panic"), 4);
    let fetched = events.iter().filter(|event| matches!(event, RunEvent::Fetched(_))).count();
    let reserved = plan.totals().cost_usd;
    assert_eq!((fetched, outcome), (12, Outcome { reserved, ..Outcome::default() }));
    assert!(start.elapsed() < (3 * 3600 + 600) * SECOND, "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn signal_does_not_wait_for_a_download() {
    let (service, videos) = (FakeService::taking(|_| 60 * SECOND), Hours::default());
    let settings = Settings::default();
    let (ledger, stop, start) = (OwnBatch::default(), Stop::default(), Instant::now());
    let mut plan = plan(&jobs(2), &History::default(), None);
    plan.downloads = Some(DownloadPlan::default());
    let running = run_with_downloads(&service, &ledger, &settings, &stop, &plan, Some(&videos));
    let signal = async {
        tokio::time::sleep(600 * SECOND).await;
        stop.because(StopReason::Signal(15));
    };
    let ((outcome, _), ()) = futures::join!(running, signal);
    assert_eq!((start.elapsed(), outcome.unfetched), (600 * SECOND, 0));
    assert_eq!(ledger.states(), [AttemptState::Completed; 2]);
}
