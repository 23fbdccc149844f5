//! What the service takes and what it costs: limits, defaults and prices of the model families, as data.
//!
//! One embedded file holds every number, each with the section of the interface document it was taken from. A limit is
//! a typed bound with one definition for its check and its message. This room checks a [`Spec`](crate::domain::Spec)
//! and prices it; it knows nothing of files, so a [`Violation`] names a field and leaves the place to the manifest.

mod bounds;
mod check;
mod file;

pub use bounds::{Choice, PromptRule, Required, SizeRule, Whole};
pub use check::{Severity, Violation};
pub use file::{Catalog, Family, Model, Price};
