//! Templates: [`engine`] is strict Jinja and the only place that knows the engine, [`named`] fills in those that need no engine, [`bounds`] keeps
//! what templates make in proportion, and [`error`] is why a text could not be filled in.

mod bounds;
pub(in crate::manifest) mod engine;
pub(in crate::manifest) mod error;
mod named;
