//! Signals: the first one drains, the second one leaves. The only place that knows what is Unix about them.

use std::time::Duration;

use crate::domain::NoticeCode;
use crate::session::{RunEvent, Stop, StopReason};

/// Signals that come within this time are one.
const ONE_WISH: Duration = Duration::from_millis(300);

const SIGINT: i32 = 2;
#[cfg(unix)]
const SIGTERM: i32 = 15;
#[cfg(unix)]
const SIGHUP: i32 = 1;

/// Turns signals into reasons to stop; returns at the second one, with its number.
pub(super) async fn watch(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync)) -> i32 {
    let mut signals = Signals::new();
    let first = signals.next().await;
    stop.because(StopReason::Signal(first));
    let message = "responses in flight are still recorded; active tasks can't be canceled, and the next run collects \
                   them; a second signal exits now";
    tell(RunEvent::Stopping { reason: StopReason::Signal(first), message: message.to_owned() });
    // Some senders signal the process and then its group: that is one wish, not two.
    tokio::time::sleep(ONE_WISH).await;
    Signals::new().next().await
}

/// The first signal that comes, by its number.
pub(super) async fn first() -> i32 {
    Signals::new().next().await
}

#[cfg(unix)]
struct Signals {
    terminate: Option<tokio::signal::unix::Signal>,
    /// The terminal was closed, or the connection to it.
    hang_up: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::SignalKind;
        // `nohup` ignores the hang-up so that the run survives its terminal; catching it would undo that.
        let hang_up = if is_ignored(SIGHUP) { None } else { catch(SignalKind::hangup()) };
        Self { terminate: catch(SignalKind::terminate()), hang_up }
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            () = interrupt() => SIGINT,
            Some(()) = received(&mut self.terminate) => SIGTERM,
            Some(()) = received(&mut self.hang_up) => SIGHUP,
        }
    }
}

#[cfg(unix)]
fn catch(kind: tokio::signal::unix::SignalKind) -> Option<tokio::signal::unix::Signal> {
    let signal = tokio::signal::unix::signal(kind);
    if let Err(error) = &signal {
        tracing::warn!(
            code = NoticeCode::SignalIgnored.code(),
            "can't catch signal {}, which would end the run at once: {error}",
            kind.as_raw_value()
        );
    }
    signal.ok()
}

/// Returns whether the parent of this process ignores a signal for it, where the system reports that: Linux does.
#[cfg(unix)]
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(unix)]
async fn received(signal: &mut Option<tokio::signal::unix::Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Self {
        Self
    }

    async fn next(&mut self) -> i32 {
        interrupt().await;
        SIGINT
    }
}

async fn interrupt() {
    if let Err(error) = tokio::signal::ctrl_c().await {
        tracing::warn!(
            code = NoticeCode::SignalIgnored.code(),
            "can't catch Ctrl-C, which would end the run at once: {error}"
        );
        std::future::pending::<()>().await;
    }
}
