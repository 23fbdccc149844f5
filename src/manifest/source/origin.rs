//! Origin of a manifest: a file, or a stream such as `-`, a pipe, or a device.
//!
//! A stream has no directory of its own. Files that its manifest names, and its ledger, are in the working directory,
//! and never beside a device: the ledger of `/dev/stdin` would be gone after the next boot.

use std::io;
use std::path::{Path, PathBuf};

use super::text::{self, MAX_FILE_BYTES, TextError};

/// The name of stdin.
const STANDARD_INPUT: &str = "-";

/// Returns whether a manifest is a stream, and not a file that exists the next time.
pub(crate) fn is_stream(path: &Path) -> bool {
    // These may lead to a plain file, whose other name is unknown.
    let is_descriptor = ["/dev/stdin", "/dev/fd", "/proc"].iter().any(|top| path.starts_with(top));
    path == Path::new(STANDARD_INPUT)
        || is_descriptor
        || path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The directory of a manifest, from which on it names files; the working directory for a stream.
pub(crate) fn directory(path: &Path) -> PathBuf {
    if is_stream(path) { PathBuf::new() } else { path.parent().unwrap_or(Path::new("")).to_owned() }
}

/// The directory of the manifest's own file, where its ledger and its reports are. A link to it is not another manifest: with
/// a ledger of its own, everything would be paid for again.
pub(crate) fn home(path: &Path) -> PathBuf {
    let real = if path.is_symlink() && !is_stream(path) { path.canonicalize().ok() } else { None };
    directory(real.as_deref().unwrap_or(path))
}

/// The manifest's text.
pub(crate) fn read(path: &Path) -> Result<String, TextError> {
    if path == Path::new(STANDARD_INPUT) {
        text::read_all(io::stdin().lock(), MAX_FILE_BYTES)
    } else if path.to_str().is_some_and(text::is_url) {
        Err(TextError::Url)
    } else {
        text::read_all(std::fs::File::open(path)?, MAX_FILE_BYTES)
    }
}
