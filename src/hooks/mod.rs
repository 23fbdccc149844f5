//! Runs hooks: the user's programs for local images and downloaded videos.
//!
//! Only the command line and the environment name hooks. A manifest can't, because a downloaded one must not start programs. Hooks inherit neither the
//! key nor another setting of shotlist.
//!
//! [`program`] starts one without a shell and with a timeout, kills it with its child processes, and returns the URL of an image.

mod program;

pub(crate) use program::Video;
pub use program::{AssetCommand, InvalidCommand, Program};
