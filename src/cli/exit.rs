//! Exit codes: the contract with scripts. When several apply, the one furthest down the table wins.

use std::process::ExitCode;

use crate::domain::RefusalCode;

/// The end of a command, from best to worst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Exit {
    /// All work is done.
    Done,
    /// All that is left to do waits for a face review.
    Held,
    /// Some job is failed, rejected or past its deadline.
    SomeFailed,
    /// Some job is in doubt.
    InDoubt,
    /// A spend limit or a missing confirmation refused the run, or stopped it.
    NotAllowed,
    /// The service could not be reached.
    Unreachable,
    /// The service refused the key.
    KeyRefused,
    /// Another run holds this batch.
    Busy,
    /// The ledger or a report could not be written.
    CannotWrite,
    /// Bad usage or an invalid manifest: nothing was sent.
    Usage,
    /// Interrupted by a signal, by its number.
    Signal(i32),
}

impl Exit {
    /// The exit code of a refusal.
    pub fn of(code: RefusalCode) -> Self {
        use RefusalCode as C;
        match code {
            C::AlreadyPaid
            | C::Frozen
            | C::ConfirmationNeeded
            | C::NotConfirmed
            | C::OverLimit
            | C::PlanDiffers
            | C::ReportUnknown
            | C::WarningsNotAccepted => Self::NotAllowed,
            C::NoClient | C::Unreachable => Self::Unreachable,
            C::KeyRefused => Self::KeyRefused,
            C::BatchLocked | C::RunnerMayLive => Self::Busy,
            C::FileExists
            | C::FrozenByFailover
            | C::LedgerDamaged
            | C::LedgerRefuses
            | C::LedgerUnavailable
            | C::NotWritable => Self::CannotWrite,
            _ => Self::Usage,
        }
    }

    /// The meaning, in a few words.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Done => "all jobs are completed",
            Self::SomeFailed => "a job is not finished",
            Self::Held => "only held jobs are left",
            Self::InDoubt => "a job is in doubt",
            Self::NotAllowed => "a spend limit or a missing confirmation",
            Self::Unreachable => "the service is unreachable",
            Self::KeyRefused => "the service refused the key",
            Self::Busy => "another run has the batch lock",
            Self::CannotWrite => "a write failed",
            Self::Usage => "usage error or invalid manifest",
            Self::Signal(_) => "interrupted by a signal",
        }
    }

    /// The code.
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::SomeFailed => 1,
            Self::Held => 5,
            Self::InDoubt => 7,
            Self::NotAllowed => 3,
            Self::Unreachable => 6,
            Self::KeyRefused => 4,
            Self::Busy => 75,
            Self::CannotWrite => 74,
            Self::Usage => 2,
            // By custom of shells: 128 and the signal.
            Self::Signal(number) => u8::try_from(128 + number).unwrap_or(u8::MAX),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_ordered_like_the_table() {
        let table = [
            (Exit::Done, 0),
            (Exit::Held, 5),
            (Exit::SomeFailed, 1),
            (Exit::InDoubt, 7),
            (Exit::NotAllowed, 3),
            (Exit::Unreachable, 6),
            (Exit::KeyRefused, 4),
            (Exit::Busy, 75),
            (Exit::CannotWrite, 74),
            (Exit::Usage, 2),
            (Exit::Signal(2), 130),
            (Exit::Signal(15), 143),
        ];
        for pair in table.windows(2) {
            assert!(pair[0].0 < pair[1].0, "{pair:?}");
            assert_eq!((pair[0].0.code(), pair[1].0.code()), (pair[0].1, pair[1].1));
        }
    }

    /// A new code must not end with 2, as if nothing was sent, without a decision.
    #[test]
    fn exit_code_of_each_refusal_matches_the_snapshot() {
        let lines = RefusalCode::ALL.iter().map(|code| format!("{} {}", Exit::of(*code).code(), code.code()));
        insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    }
}
