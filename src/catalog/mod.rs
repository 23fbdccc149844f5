//! Catalog: limits, defaults, and prices of the model families, as data.
//!
//! One embedded file has every number, each with its section of the interface document. A limit is a typed bound with
//! one definition for its check and its message. This module checks a [`Spec`](crate::domain::Spec) and prices it; it
//! knows nothing of files, so a [`FieldDiagnostic`] names a field and leaves its location to the manifest.

mod check;
mod file;

pub use check::{FieldDiagnostic, Severity};
pub use file::{Catalog, Choice, Family, Model, Price, PromptRule, Required, SizeRule, Whole};
