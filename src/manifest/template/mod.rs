//! Templates: [`engine`] is strict Jinja and the only file that knows the library, [`bounds`] limits time and memory and finds gaps in prompts, and
//! [`error`] is the reason why a text could not be filled in.

mod bounds;
pub(in crate::manifest) mod engine;
pub(in crate::manifest) mod error;
