//! The manifest as it was written, before templates and defaults.
//!
//! [`job_field`] is the one table of what may be said about a job. [`mirror`] has the types; [`decode`](mod@decode) fills them from values, key by key with a [`table`], so that one pass finds every mistake.
//! [`budget`], [`faces`], [`labels`], [`matrix`] and [`moved`] are some of the values.

pub(in crate::manifest) mod budget;
pub(in crate::manifest) mod decode;
pub(in crate::manifest) mod faces;
pub(in crate::manifest) mod job_field;
mod labels;
pub(in crate::manifest) mod matrix;
pub(in crate::manifest) mod mirror;
pub(in crate::manifest) mod moved;
#[cfg(test)]
mod schema;
pub(in crate::manifest) mod table;
