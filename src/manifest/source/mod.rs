//! The text of a manifest, and the places of errors in it.
//!
//! [`text`] reads a manifest and its files within bounds, and [`reader`] makes values of YAML. A [`diagnostic`] has a symbolic [`location`], which
//! becomes a byte range only on output. [`syntax`] explains invalid YAML, and limits jobs and requests. [`lints`] are warnings.

pub(in crate::manifest) mod diagnostic;
pub(in crate::manifest) mod lints;
pub(in crate::manifest) mod location;
pub(in crate::manifest) mod reader;
pub(in crate::manifest) mod syntax;
pub(in crate::manifest) mod text;
