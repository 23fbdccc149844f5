//! Programs of the user's that a run starts.
//!
//! The user names them, on the command line or in the environment, and never a manifest: one from somewhere else must not be able to
//! start anything. None of them sees the key, or any other setting of shotlist's.
//!
//! [`program`] runs one, without a shell, with a timeout, and kills it with all that it started; it also passes the facts of a downloaded video.
//! [`assets`] gets a URL for a local image.

mod assets;
mod program;

pub use assets::{AssetCommand, NoAddress};
pub use program::Video;
pub use program::{NoCommand, Program, ProgramError, Said};
