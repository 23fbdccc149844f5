//! The entries of `jobs`, decoded or still to be parsed.

use super::decode::Decoded;
use super::split::Pieces;

/// All entries, in file order.
pub(crate) enum Entries<'t> {
    /// Decoded already.
    Decoded(Vec<Decoded>),
    /// Still a text, of which many are parsed at once.
    Pieces(Pieces<'t>),
}

impl Entries<'_> {
    /// Works on each entry, with its place in the list, and lets what comes of them be taken in their order. Nothing if the text turned out
    /// to be another one than it seemed, whatever was taken.
    pub(in crate::manifest) fn in_order<U: Send, R>(
        self,
        work: impl Fn(usize, Decoded) -> U + Sync,
        take: impl FnOnce(&mut dyn Iterator<Item = U>) -> R,
    ) -> Option<R> {
        match self {
            Self::Decoded(entries) => {
                Some(take(&mut entries.into_iter().enumerate().map(|(number, entry)| work(number, entry))))
            }
            Self::Pieces(pieces) => pieces.in_order(work, take),
        }
    }
}
