//! Signals: the first one drains, the second one leaves. The only place that knows what is Unix about them.

use crate::engine::{RunEvent, Stop, StopReason};

const SIGINT: i32 = 2;
#[cfg(unix)]
const SIGTERM: i32 = 15;

/// Turns signals into reasons to stop; returns at the second one, with its number.
pub async fn watch(stop: &Stop, tell: &(dyn Fn(RunEvent) + Sync)) -> i32 {
    let mut signals = Signals::new();
    let first = signals.next().await;
    stop.because(StopReason::Signal(first));
    let message = "open submissions are answered and recorded; tasks at the service can't be cancelled, and the next \
                   run collects them; once more leaves at once";
    tell(RunEvent::Stopping { reason: StopReason::Signal(first), message: message.to_owned() });
    signals.next().await
}

#[cfg(unix)]
struct Signals {
    terminate: Option<tokio::signal::unix::Signal>,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Self {
        use tokio::signal::unix::{SignalKind, signal};
        let terminate = signal(SignalKind::terminate());
        if let Err(error) = &terminate {
            tracing::warn!("SIGTERM can't be caught, and would end the run at once: {error}");
        }
        Self { terminate: terminate.ok() }
    }

    async fn next(&mut self) -> i32 {
        tokio::select! {
            () = interrupt() => SIGINT,
            Some(()) = async { self.terminate.as_mut()?.recv().await } => SIGTERM,
        }
    }
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
        tracing::warn!("Ctrl-C can't be caught, and would end the run at once: {error}");
        std::future::pending::<()>().await;
    }
}
