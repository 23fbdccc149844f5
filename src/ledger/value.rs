//! Values of SQL statements, and the two kinds of ledgers.

use std::borrow::Cow;

use serde::Serialize;

/// A value of a statement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Value<'v> {
    Number(i64),
    Text(Option<Cow<'v, str>>),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(is: bool) -> Self {
        Self::Number(is.into())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl<'v, T: AsRef<str> + ?Sized> From<&'v T> for Value<'v> {
    fn from(text: &'v T) -> Self {
        Self::Text(Some(text.as_ref().into()))
    }
}

impl<'v> From<Option<&'v str>> for Value<'v> {
    fn from(text: Option<&'v str>) -> Self {
        Self::Text(text.map(Into::into))
    }
}

/// The kind of a ledger's purchases. The two never mix: a sandbox run must not look like a purchase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Real tasks and real money.
    Real,
    /// The simulator's.
    Simulated,
}
