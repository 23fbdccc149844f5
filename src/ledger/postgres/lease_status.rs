//! The state of a runner's lease.

/// The state of a runner's lease when it writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ledger) enum LeaseStatus {
    /// Its last write is the one that it knows.
    Valid,
    /// The write whose acknowledgment was lost was made.
    Written,
    /// The database lost a write that it acknowledged.
    Forgotten,
    /// Others took over. It records what it bought, and buys nothing more.
    Expired,
}
