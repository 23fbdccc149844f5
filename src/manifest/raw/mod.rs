//! The manifest before templates and defaults.
//!
//! [`job_field`] is the table of a job's fields. [`decode`](mod@decode) has the types of a manifest and fills them from YAML values, key by key with a
//! [`table`], so one pass reports every error. [`sections`] decodes the small parts of the file, and [`matrix`] a job's matrix.

pub(in crate::manifest) mod decode;
pub(in crate::manifest) mod job_field;
pub(in crate::manifest) mod matrix;
#[cfg(test)]
mod schema;
pub(in crate::manifest) mod sections;
pub(in crate::manifest) mod table;
