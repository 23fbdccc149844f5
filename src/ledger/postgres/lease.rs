//! The lease of this runner: renewed by each heartbeat, which also expires the others' where it is over.

use crate::domain::{NoticeCode, with_causes};
use std::sync::atomic::Ordering;

use tokio::time::Instant;

use super::heartbeats::Heartbeats;
use super::runner::{conclude, expire_silent, heartbeats};
use super::writer::Writer;

impl Writer {
    /// Sends a heartbeat, expires runners without a lease, and puts intents in doubt whose response can't come any more.
    pub(super) async fn give_a_sign(&mut self) {
        let times = self.times;
        let known = std::mem::replace(&mut self.heartbeats, Heartbeats::new());
        let latest = self
            .transact(async |transaction, _, _| {
                expire_silent(transaction, &known, &times).await?;
                conclude(transaction, None, &times).await?;
                heartbeats(transaction).await
            })
            .await;
        self.heartbeats = known;
        match latest {
            Ok(latest) => self.note_heartbeats(latest),
            // The next heartbeat is tried anyway, and each write reports the error itself.
            Err(error) => {
                tracing::warn!(
                    code = NoticeCode::HeartbeatFailed.code(),
                    "can't renew the lease: {}",
                    with_causes(&error)
                );
            }
        }
        self.last_sign = Instant::now();
    }

    /// Notes which runners live: they share the rate limit from now on.
    pub(super) fn note_heartbeats(&mut self, latest: Vec<(i64, i64)>) {
        self.shared.alive.store(u32::try_from(latest.len()).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.heartbeats.note(latest, &self.times);
    }

    /// Deregisters the runner.
    pub(super) async fn take_leave(&mut self) {
        let left = self.transact(async |transaction, runner, _| runner.leave(transaction).await).await;
        if let Err(error) = left {
            let why = with_causes(&error);
            tracing::debug!("the ledger does not know that this runner has ended: {why}");
        }
    }
}
