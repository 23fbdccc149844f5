//! From entries to jobs: one for each row, combination and take.
//!
//! [`expander`] goes through the entries. [`fields`] compiles the texts of one, and reads its files with [`local_images`]. For each row, [`maker`] takes
//! the fields of the job or the defaults, and fills in the templates: [`plain_fields`], which may use each other, then [`lists`], images, and
//! [`takes`]. [`checked`] is the result, with its price and the diagnostics of the catalog; so far no entry knows another. [`finisher`] adds the
//! jobs one by one, refuses an ID or a file that is in use, and compares moves with the jobs at the end.

mod checked;
pub(in crate::manifest) mod expander;
mod fields;
pub(super) mod finisher;
mod lists;
pub(in crate::manifest) mod local_images;
mod maker;
mod plain_fields;
mod takes;
