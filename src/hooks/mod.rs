//! The user's programs that a run starts.
//!
//! Only the command line and the environment name them. A manifest can't: a downloaded one must not start programs. They inherit neither the key nor any
//! other setting of shotlist.
//!
//! [`program`] runs one without a shell, with a timeout, kills it with its child processes, passes the facts of a downloaded video,
//! and gets URLs for local images.

mod program;

pub use program::AssetCommand;
pub(crate) use program::Video;
pub use program::{NoCommand, Program};
