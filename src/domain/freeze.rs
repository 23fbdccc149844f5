//! A freeze of all purchases in a ledger.

use std::sync::Arc;

use super::codes::RefusalCode;

/// A freeze: the ledger allows no purchase until the user unfreezes it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("purchases are frozen: {why}")]
pub struct Freeze {
    /// The reason.
    pub why: Arc<str>,
    /// True if a failover froze it, after which purchases may be missing; false if `shotlist limit set` did.
    pub by_failover: bool,
}

impl Freeze {
    /// The freeze that `shotlist limit set` makes.
    pub fn on_request(why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), by_failover: false }
    }

    /// The code of a refusal because of it.
    pub fn code(&self) -> RefusalCode {
        if self.by_failover { RefusalCode::FrozenByFailover } else { RefusalCode::Frozen }
    }
}
