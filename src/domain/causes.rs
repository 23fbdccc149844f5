//! An error's causes, for the user.

use std::error::Error;

/// An error with all of its causes, outermost first.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    causes(error).map_or_else(|| error.to_string(), |causes| format!("{error}: {causes}"))
}

/// The causes of an error without itself, outermost first; nothing if it has none.
pub(crate) fn causes(error: &dyn Error) -> Option<String> {
    let texts = std::iter::successors(error.source(), |cause| (*cause).source()).map(ToString::to_string);
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(": "))
}
