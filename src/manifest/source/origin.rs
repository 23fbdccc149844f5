//! Where a manifest comes from: a file, or a stream such as `-`, a pipe or a device.
//!
//! A stream has no folder of its own. What a manifest from a stream names, and what is kept for it, is in the working
//! folder, and never beside a device: the ledger of `/dev/stdin` would be gone with the next boot.

use std::io;
use std::path::{Path, PathBuf};

use super::text::{self, LARGEST, TextError};

/// What stands for the standard input.
const STANDARD_INPUT: &str = "-";

/// Whether a manifest comes from a stream, and not from a file that is there the next time.
#[must_use]
pub(crate) fn is_stream(path: &Path) -> bool {
    // What these lead to may be a plain file, of which nobody knows another name.
    let is_descriptor = ["/dev/stdin", "/dev/fd", "/proc"].iter().any(|top| path.starts_with(top));
    path == Path::new(STANDARD_INPUT)
        || is_descriptor
        || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The folder of a manifest, from which on it names files; the working folder for a stream.
#[must_use]
pub(crate) fn folder(path: &Path) -> PathBuf {
    if is_stream(path) { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() }
}

/// The folder of the manifest's own file, where its ledger and its reports are. A link to it is not another manifest: with
/// a ledger of its own, everything would be paid for again.
#[must_use]
pub(crate) fn home(path: &Path) -> PathBuf {
    let real = if path.is_symlink() && !is_stream(path) { path.canonicalize().ok() } else { None };
    folder(real.as_deref().unwrap_or(path))
}

/// The manifest's text.
pub(crate) fn read(path: &Path) -> Result<String, TextError> {
    if path == Path::new(STANDARD_INPUT) {
        text::read_all(io::stdin().lock(), 0, LARGEST)
    } else {
        text::read_at_most(path, LARGEST)
    }
}
