//! The kind of a ledger.

/// The kind of a ledger's purchases. The two never mix: a sandbox run must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}
