//! From entries to jobs: one for each row, combination and take.
//!
//! [`expander`] goes through the entries. [`fields`] compiles the texts of one, and reads its files with [`local_images`]; [`maker`] chooses for each row between the job's own
//! and the defaults and fills the templates in: [`plain_fields`], which may use each other, then [`lists`], images, and [`takes`]. [`checked`] is what the
//! catalog says of what came of it, with its price; so far no entry knows another. [`finisher`] takes the jobs in one by one, and
//! knows the [`names_in_use`]. [`moves`] are held against the jobs at the end.

mod checked;
pub(in crate::manifest) mod expander;
mod fields;
mod finisher;
mod lists;
pub(in crate::manifest) mod local_images;
mod maker;
pub(in crate::manifest) mod moves;
mod names_in_use;
mod plain_fields;
mod takes;
