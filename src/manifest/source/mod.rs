//! The text of a manifest: where it comes from, and where in it something is wrong.
//!
//! [`text`] reads a manifest and its files within bounds. A [`diagnostic`] has a symbolic [`location`]; a second parser finds its bytes only when it is
//! shown. [`syntax`] explains what the parser refuses, and limits jobs, text, and depth. [`lints`] are warnings.

pub(in crate::manifest) mod diagnostic;
pub(in crate::manifest) mod lints;
pub(in crate::manifest) mod location;
pub(in crate::manifest) mod syntax;
pub(in crate::manifest) mod text;
