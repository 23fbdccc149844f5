//! Runtime of a command, and the signals that end it early.

use std::collections::BTreeMap;
use std::time::Duration;

use super::failure::Failure;
use crate::domain::{JobId, NoticeCode, Usd};
use crate::session::{RunEvent, Stop, StopReason};

#[cfg(unix)]
use tokio::signal::unix::SignalKind;

/// Does something to its end. On one thread: a command waits, and waking another thread for each answer costs more than all
/// the rest.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::cannot_write(&error))?;
    let done = runtime.block_on(async {
        catch_file_size_limit();
        work.await
    });
    // A download that was given up may still be writing.
    runtime.shutdown_background();
    done
}

/// Lets a write beyond the limit on file sizes fail like one on a full disk, in place of a signal that kills the process.
fn catch_file_size_limit() {
    #[cfg(unix)]
    {
        // Its handler stays for the life of the process. Without one, the ledger covers a kill.
        let _uncaught = tokio::signal::unix::signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()));
    }
}

/// Signals that come within this time are one.
const ONE_WISH: Duration = Duration::from_millis(300);

/// Turns signals into reasons to stop. Returns at the second one, with its number and the jobs that it leaves in doubt.
pub(super) async fn watch(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync)) -> (i32, BTreeMap<JobId, Usd>) {
    let first = first().await;
    stop.because(StopReason::Signal(first));
    let in_flight = stop.in_flight();
    let responses = match in_flight.len() {
        0 => "a second signal exits now".to_owned(),
        1 => format!("waiting for 1 response; a second signal leaves it in doubt: ${}", sum(&in_flight)),
        more => format!("waiting for {more} responses; a second signal leaves them in doubt: ${}", sum(&in_flight)),
    };
    let message = format!("active tasks can't be canceled, and the next run finishes them; {responses}");
    tell(RunEvent::Stopping { reason: StopReason::Signal(first), message });
    // Some senders signal the process and then its group: that is one wish, not two.
    tokio::time::sleep(ONE_WISH).await;
    let second = self::first().await;
    (second, stop.in_flight())
}

/// The price of submissions.
pub(super) fn sum(in_flight: &BTreeMap<JobId, Usd>) -> Usd {
    in_flight.values().copied().sum()
}

/// The first signal that comes, by its number.
#[cfg(unix)]
pub(super) async fn first() -> i32 {
    // `nohup` ignores the hang-up so that the run survives its terminal; catching it would undo that.
    let hang_up = Some(SignalKind::hangup()).filter(|kind| !is_ignored(kind.as_raw_value()));
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hang_up);
    futures::future::select_all(kinds.map(|kind| Box::pin(received(kind)))).await.0
}

#[cfg(unix)]
async fn received(kind: SignalKind) -> i32 {
    let number = kind.as_raw_value();
    match tokio::signal::unix::signal(kind) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(error) => never_caught(&error).await,
    }
    number
}

/// Returns whether the parent of this process ignores a signal for it, where the system reports that: Linux does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

/// Ctrl-C, as the number of its signal elsewhere.
#[cfg(not(unix))]
pub(super) async fn first() -> i32 {
    if let Err(error) = tokio::signal::ctrl_c().await {
        never_caught(&error).await;
    }
    2
}

async fn never_caught(error: &std::io::Error) {
    tracing::warn!(
        code = NoticeCode::SignalIgnored.code(),
        "can't catch a signal, which would end the run at once: {error}"
    );
    std::future::pending::<()>().await;
}
