//! The text of a manifest: where it comes from, and where in it something is wrong.
//!
//! [`text`] reads a manifest and its files within bounds, and [`reader`] makes values of YAML. A [`diagnostic`] has a symbolic [`location`], whose bytes
//! are looked up only when it is shown. [`syntax`] explains invalid YAML, and limits jobs and requests. [`lints`] are warnings.

pub(in crate::manifest) mod diagnostic;
pub(in crate::manifest) mod lints;
pub(in crate::manifest) mod location;
pub(in crate::manifest) mod reader;
pub(in crate::manifest) mod syntax;
pub(in crate::manifest) mod text;
