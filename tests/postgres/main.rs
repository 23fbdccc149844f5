//! Several runners and one ledger, on a real PostgreSQL. A separate target, because it needs that server: `cargo test --test postgres`.
#![cfg(target_os = "linux")]
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

mod breaks;
mod cluster;
mod commands;
mod failover;
mod ledger;
mod lives;
mod proxy;
mod refusals;
mod scans;
mod team;

/// The words of the suite.
mod domain {
    pub use shotlist::domain::*;
}
