//! The text of a manifest: where it comes from, and where in it something is wrong.
//!
//! [`origin`] says where a manifest comes from, and [`text`] reads it, and the files that it names, within bounds; [`bounds`] holds jobs, text
//! and depth. A [`diagnostic`] holds a symbolic [`location`], and only when there is one to show does [`marks`] parse the file a second
//! time for byte ranges. [`syntax`] explains what the parser could not read, [`layout`] what is in a wrong column, [`lints`] are
//! warnings about what no rule forbids, and [`suggest`] says what was probably meant.

pub(in crate::manifest) mod bounds;
pub(in crate::manifest) mod diagnostic;
pub(in crate::manifest) mod layout;
pub(in crate::manifest) mod lints;
pub(in crate::manifest) mod location;
pub(in crate::manifest) mod marks;
pub(in crate::manifest) mod origin;
pub(in crate::manifest) mod suggest;
pub(in crate::manifest) mod syntax;
pub(in crate::manifest) mod text;
