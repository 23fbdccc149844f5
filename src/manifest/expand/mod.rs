//! From entries to jobs: one for each row, combination, and take.
//!
//! [`expander`] goes through the entries. [`fields`] compiles the templates of each one once, and reads its files. For each row, [`maker`] chooses between the job's fields and
//! the defaults, and renders their templates; [`lists`] does so for lists, images, takes, and `extra`.
//! [`finisher`] checks and prices a job, adds it to the others, and refuses an ID or a file that is in use.

pub(in crate::manifest) mod expander;
pub(in crate::manifest) mod fields;
pub(super) mod finisher;
mod lists;
pub(in crate::manifest) mod maker;
