//! Values of statements.

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
