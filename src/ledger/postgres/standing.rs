//! The standing of a runner in the ledger.

/// What a runner finds when it comes to write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// All is as it was left.
    Sound,
    /// The write whose answer was lost was made.
    Written,
    /// The database has forgotten what it acknowledged.
    Forgotten,
    /// It was declared dead: what it bought is its own to record, and it buys nothing more.
    Dead,
}
