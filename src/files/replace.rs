//! Replaces a file as a whole.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use super::directory::sync_directory;

/// The prefix of a temporary name; a few random characters follow.
const TEMPORARY: &str = ".shotlist-tmp-";
const RANDOM_CHARS: usize = 8;
/// A temporary file that is older than this belongs to a dead process.
const MAX_AGE: Duration = Duration::from_hours(1);

/// The number of bytes in one write. A page of thousands of cards has megabytes.
const PIECE: usize = 1 << 16;

/// Replaces a file: a reader sees the complete old or new one, also after a power loss. A link is replaced, and its target stays unchanged.
pub(crate) fn replace(
    path: &Path,
    write: impl FnOnce(&Path, &mut BufWriter<&File>) -> io::Result<()>,
) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // The umask removes further permissions.
    let builder = temporary_with_mode(0o666);
    let file = builder.tempfile_in(directory)?;
    let mut buffer = BufWriter::with_capacity(PIECE, file.as_file());
    write(directory, &mut buffer)?;
    buffer.flush()?;
    drop(buffer);
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_directory(path)
}

/// Names temporary files and directories, in a form that only [`sweep`] recognizes.
pub(crate) fn temporary() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(TEMPORARY).rand_bytes(RANDOM_CHARS);
    builder
}

/// A temporary name with a mode on Unix, reduced by the umask. By default, only the owner has access.
#[cfg_attr(not(unix), expect(unused_mut, unused_variables, reason = "only Unix has modes"))]
pub(crate) fn temporary_with_mode(mode: u32) -> tempfile::Builder<'static, 'static> {
    let mut builder = temporary();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
    builder
}

/// Removes temporary files of killed processes. A file that can't be removed is hidden, and harmless.
pub(crate) fn sweep(directory: &Path) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let age = found.modified().ok().and_then(|modified| modified.elapsed().ok());
        if found.is_file() && is_temporary(&entry.file_name().to_string_lossy()) && age.is_some_and(|age| age > MAX_AGE)
        {
            let _harmless = fs::remove_file(entry.path());
        }
    }
}

/// Returns whether a name has the exact form of [`temporary`]. Users have files such as `.shotlist-key`.
fn is_temporary(name: &str) -> bool {
    let random = name.strip_prefix(TEMPORARY).unwrap_or_default();
    random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
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
    fn sweep_removes_only_old_temporary_files() {
        let root = tempfile::tempdir().expect("a directory");
        let users = [
            ".shotlist-key",
            ".shotlist-notes.md",
            ".shotlist-tmp-",
            ".shotlist-tmp-abcdefg",
            ".shotlist-tmp-abcdefghi",
            ".shotlist-tmp-abcd.efg",
            "shotlist-tmp-abcdefgh",
        ];
        let age = |file: &File, hours| {
            file.set_modified(std::time::SystemTime::now() - Duration::from_hours(hours)).expect("an age");
        };
        for name in users {
            age(&File::create(root.path().join(name)).expect("a file"), 2);
        }
        let (_, dead) = temporary().tempfile_in(root.path()).expect("a file").keep().expect("kept");
        age(&File::options().write(true).open(&dead).expect("the file"), 2);
        let kept_directory = temporary().tempdir_in(root.path()).expect("a directory").keep();
        fs::write(kept_directory.join("video"), "").expect("a file");
        #[cfg(unix)]
        age(&File::open(&kept_directory).expect("the directory"), 2);
        let alive = temporary().tempfile_in(root.path()).expect("a file");
        sweep(root.path());
        assert!(!dead.exists() && alive.path().exists() && kept_directory.join("video").exists());
        for name in users {
            assert!(root.path().join(name).exists(), "{name}");
        }
    }
}
