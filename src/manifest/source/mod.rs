//! The text of a manifest: where it comes from, and where in it something is wrong.
//!
//! [`text`] reads a manifest and its files within bounds. A [`diagnostic`] has a symbolic [`location`]; only to show one does [`marks`] parse the
//! file a second time for byte ranges. [`syntax`] explains errors of the parser, [`layout`] those of columns, and limits jobs, text, and depth.
//! [`lints`] are warnings.

pub(in crate::manifest) mod diagnostic;
pub(in crate::manifest) mod layout;
pub(in crate::manifest) mod lints;
pub(in crate::manifest) mod location;
pub(in crate::manifest) mod marks;
pub(in crate::manifest) mod syntax;
pub(in crate::manifest) mod text;
