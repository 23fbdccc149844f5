//! Marks of other batches whose reports are to be written. If a run is killed before it writes them, the next run does.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use crate::domain::NoticeCode;
use crate::files::{open_plain, replace};

/// A file in the directory of a batch, with the batch value.
const MARK: &str = ".unreported";
/// The longest batch value that is read back, in bytes.
const MAX_BYTES: u64 = 64 << 10;

/// Marks a batch. A directory that is missing has no reports that could be outdated.
pub(super) fn mark(directory: &Path, batch: &str) -> io::Result<()> {
    if !directory.is_dir() {
        return Ok(());
    }
    replace(&directory.join(MARK), |_, file| file.write_all(batch.as_bytes()))
}

/// Removes the mark of a batch.
pub(super) fn unmark(directory: &Path) {
    if let Err(error) = fs::remove_file(directory.join(MARK))
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(
            code = NoticeCode::FileLeft.code(),
            "can't remove `{}`: {error}",
            directory.join(MARK).display()
        );
    }
}

/// The marked batches, in the directories below one.
pub(super) fn marked(parent: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(parent) else { return Vec::new() };
    let below = entries.flatten().map(|entry| entry.path());
    below.chain([parent.to_owned()]).filter_map(|directory| read(&directory.join(MARK))).collect()
}

fn read(path: &Path) -> Option<String> {
    let mut batch = String::new();
    open_plain(path, File::options().read(true)).ok()?.take(MAX_BYTES).read_to_string(&mut batch).ok()?;
    Some(batch)
}
