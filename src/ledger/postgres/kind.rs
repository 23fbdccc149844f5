//! Of what money a ledger is.

/// What a ledger is about. The two never mix: a rehearsal must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}

impl Kind {
    /// The schema that its tables are in.
    pub(super) fn schema(self) -> &'static str {
        match self {
            Self::Real => "shotlist",
            Self::Simulated => "shotlist_sandbox",
        }
    }
}
