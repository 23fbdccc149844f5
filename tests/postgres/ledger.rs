//! The ledger's suite, as every store has to keep it, on a real PostgreSQL.

pub use shotlist::ledger::*;

#[path = "distance.rs"]
mod distance;
#[path = "sharing.rs"]
mod sharing;
#[expect(dead_code, reason = "a file has one runner at a batch")]
#[path = "../../src/ledger/suite/mod.rs"]
pub mod suite;

use crate::cluster::{Cluster, Database};
use crate::domain::BatchKey;
use suite::{Fresh, for_store};

struct OnAServer(Database);

impl Fresh for OnAServer {
    type Ledger = PostgresLedger;

    fn fresh() -> Self {
        Self(Cluster::shared().database())
    }

    fn ledger(&self) -> PostgresLedger {
        PostgresLedger::real(self.0.address())
    }

    async fn hold_regardless(&self, batch: &BatchKey) -> PostgresBatch {
        // A runner of its own, as on another machine.
        self.ledger().hold(batch).await.expect("the batch")
    }
}

for_store!(OnAServer);
