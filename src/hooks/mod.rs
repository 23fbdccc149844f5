//! The user's programs that a run starts.
//!
//! Only the command line and the environment name them. A manifest can't: a downloaded one must not start programs. They inherit neither the key nor any
//! other setting of shotlist.
//!
//! [`program`] runs one without a shell, with a timeout, kills it with its child processes, and passes the facts of a downloaded video.
//! [`assets`] gets a URL for a local image.

mod assets;
mod program;

pub use assets::AssetCommand;
pub(crate) use program::Video;
pub use program::{NoCommand, Program};
