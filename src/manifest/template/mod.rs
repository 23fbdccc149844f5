//! Templates: [`engine`] is strict Jinja and the only file that knows the library. [`bounds`] limits time and memory, and finds gaps in prompts.

pub(in crate::manifest) mod bounds;
pub(in crate::manifest) mod engine;
