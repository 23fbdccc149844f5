//! Programs of the user's that a run starts.
//!
//! The user names them, on the command line or in the environment, and never a manifest: one from somewhere else must not be able to
//! start anything. None of them sees the key, or any other setting of shotlist's.
//!
//! [`program`] is one start, without a shell, bounded in time and killed with all that it started. [`assets`] gives a local image an
//! address, [`program`] tells of a video that is in its place.

mod assets;
mod program;

pub use assets::{AssetCommand, NoAddress};
pub use program::Video;
pub use program::{NoCommand, Program, ProgramError, Said};
