//! Replaces a file as a whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use super::directory::sync_directory;

/// The beginning of a temporary file's name.
pub(super) const TEMPORARY: &str = ".shotlist-";
/// A file that is on its way for longer than this belongs to a process that is dead.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The number of bytes in one write: a page of thousands of cards is megabytes.
const PIECE: usize = 1 << 16;

/// Replaces a file: a reader sees the old one or the new one, whole, also after the power was lost in between. A link of
/// that name is replaced, and what it leads to stays as it is.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&Path, &mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask takes away what the user does not want; a temporary file would be for its owner only.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    let mut buffer = BufWriter::with_capacity(PIECE, file.as_file());
    write(directory, &mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(path)
}

/// Removes what processes left on its way that were killed. Whatever can't be removed is hidden, and in no one's way.
pub(crate) fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_string_lossy().starts_with(TEMPORARY);
        let age =
            entry.metadata().ok().filter(fs::Metadata::is_file).and_then(|found| found.modified().ok()?.elapsed().ok());
        if is_ours && age.is_some_and(|age| age > MAX_AGE) {
            let _in_nobodys_way = fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_at_once_and_leaves_nothing_else_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("report.csv");
        replace(&path, |_, file| file.write_all(b"old")).expect("written");
        replace(&path, |_, file| file.write_all(b"new")).expect("written");
        replace(&path, |_, file| file.write_all(b"half").and(Err(io::ErrorKind::StorageFull.into())))
            .expect_err("full");
        assert_eq!(fs::read(&path).expect("the file"), b"new");
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn what_a_dead_process_left_is_swept_and_what_is_on_its_way_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        for (name, age) in [(".shotlist-dead", 2), (".shotlist-alive", 0), ("mine", 2)] {
            let file = File::create(directory.path().join(name)).expect("a file");
            file.set_modified(std::time::SystemTime::now() - Duration::from_hours(age)).expect("an age");
        }
        sweep(directory.path());
        let mut left: Vec<_> = fs::read_dir(directory.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        left.sort();
        assert_eq!(left, [".shotlist-alive", "mine"]);
    }
}
