//! The lease of this runner: renewed by each heartbeat, which also expires the others' where it is over.

use crate::domain::{NoticeCode, with_causes};

use tokio::time::Instant;

use super::heartbeats::Heartbeats;
use super::runner::{expire_silent, heartbeats};
use super::store::PostgresStore;
use crate::ledger::writing::operations;

impl PostgresStore {
    /// Sends a heartbeat, expires runners without a lease, and puts intents in doubt whose response can't come any more.
    pub(super) async fn send_heartbeat(&mut self) {
        let times = self.times;
        let known = std::mem::replace(&mut self.heartbeats, Heartbeats::new());
        let latest = self
            .transact_all(async |it| {
                let expires = expire_silent(&it.transaction, &known, &times);
                let recovers = operations::recover_intents(it, None);
                let (expired, recovered, latest) = futures::join!(expires, recovers, heartbeats(&it.transaction));
                expired?;
                Ok((recovered?.map(drop), latest?))
            })
            .await;
        self.heartbeats = known;
        match latest {
            Ok((recovered, latest)) => {
                if let Err(error) = recovered {
                    tracing::warn!(code = NoticeCode::HeartbeatFailed.code(), "can't recover intents: {error}");
                }
                self.note_heartbeats(latest);
            }
            // The next heartbeat is tried anyway, and each write reports the error itself.
            Err(error) => {
                tracing::warn!(
                    code = NoticeCode::HeartbeatFailed.code(),
                    "can't renew the lease: {}",
                    with_causes(&error)
                );
            }
        }
        self.last_heartbeat = Instant::now();
    }

    /// Records the latest heartbeat of each live runner.
    pub(super) fn note_heartbeats(&mut self, latest: Vec<(i64, i64)>) {
        self.heartbeats.note(latest, &self.times);
    }

    /// Deregisters the runner.
    pub(super) async fn deregister(&mut self) {
        let left = self
            .transact_all(async |it| {
                it.runner.deregister(&it.transaction);
                Ok(())
            })
            .await;
        if let Err(error) = left {
            let why = with_causes(&error);
            tracing::debug!("the ledger does not know that this runner has ended: {why}");
        }
    }
}
