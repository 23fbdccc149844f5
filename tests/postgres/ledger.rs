//! The ledger's suite, as every store has to keep it, on a real PostgreSQL.

pub use shotlist::ledger::*;

#[path = "distance.rs"]
mod distance;
#[path = "leases.rs"]
mod leases;
#[path = "../../src/ledger/suite/mod.rs"]
pub mod suite;

use crate::cluster::{Cluster, Database};
use suite::{Fresh, for_store};

struct OnAServer(Database);

impl Fresh for OnAServer {
    // Each takes two seconds there.
    const SEQUENCES: u32 = 16;

    fn fresh() -> Self {
        Self(Cluster::shared().database())
    }

    fn ledger(&self) -> Ledger {
        LedgerAddress::Database(self.0.address()).ledger(false)
    }
}

for_store!(OnAServer);
for_store!(OnAServer: copies_carry_every_state);
