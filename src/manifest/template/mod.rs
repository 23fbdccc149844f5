//! Templates: [`engine`] is strict Jinja and the only place that knows the engine, [`empty_cells`] finds gaps in prompts, [`bounds`] keeps
//! what templates make in proportion, and [`error`] is why a text could not be filled in.

mod bounds;
mod empty_cells;
pub(in crate::manifest) mod engine;
pub(in crate::manifest) mod error;
