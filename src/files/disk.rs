//! Plain files and directories on the disk.
//!
//! No link, pipe, or device is opened. Directories are synced into their parents, none below a given directory is a link, and a file is replaced as a
//! whole.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use tokio::sync::oneshot;

/// A path with a suffix on its last name.
pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Creates a directory and its missing parents, each durable.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    make_directory(path, &fs::DirBuilder::new())
}

fn make_directory(path: &Path, builder: &fs::DirBuilder) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_directories(above)?;
    }
    match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| sync_directory(path)),
    }
}

/// Creates a directory for the user and the group only, with any umask, and its missing parents.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has a mode to set"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o770);
    make_directory(path, &builder)
}

/// Refuses a path with a link below this directory. A missing part is allowed.
pub(crate) fn no_links_below(top: &Path, path: &Path) -> io::Result<()> {
    let mut way = top.to_owned();
    for part in path.strip_prefix(top).unwrap_or(path) {
        way.push(part);
        no_link(&way).map_err(|error| {
            let message = format!("{}: {error}", way.display());
            io::Error::new(error.kind(), message)
        })?;
    }
    Ok(())
}

/// The directory of a file.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the contents of a file that another handle wrote. Windows requires a handle with write access.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    File::options().read(true).write(cfg!(windows)).open(path)?.sync_all()
}

/// Syncs the name of a file or directory, where directories can be synced. Other systems document no durability of names.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory_of(file))?.sync_all() } else { Ok(()) }
}

/// The number of tested bytes: more than reserved blocks or a used-up quota leave.
const TRIED: usize = 1 << 20;

/// Writes and removes a temporary file in a directory, or in its nearest existing parent. Returns the number of free bytes, if the system reports it.
pub(crate) fn try_write(directory: &Path) -> io::Result<Option<u64>> {
    let absolute = std::path::absolute(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })?;
    let nearest = absolute.ancestors().find(|above| above.exists()).unwrap_or(&absolute);
    let mut file = temporary().tempfile_in(nearest)?;
    file.write_all(&vec![0; TRIED])?;
    file.as_file().sync_all()?;
    Ok(free_bytes(nearest))
}

#[cfg(unix)]
fn free_bytes(directory: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(directory).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

#[cfg(not(unix))]
fn free_bytes(_: &Path) -> Option<u64> {
    None
}

/// Gives a file a free name. Never replaces a file of another process.
pub(crate) fn name_anew(file: &Path, name: &Path) -> io::Result<()> {
    match fs::hard_link(file, name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        // A file system without hard links: checked before, the name is free.
        Err(_) if name.symlink_metadata().is_err() => fs::rename(file, name),
        named => named,
    }
}

/// Runs disk work on a separate thread, so it does not block the run. Returns an error if no thread can start, or if the work panics.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (answer, answered) = oneshot::channel();
    // Not a thread of the runtime, which panics without a free one.
    std::thread::Builder::new().name("disk".to_owned()).spawn(move || drop(answer.send(work())))?;
    answered.await.map_err(|_| io::Error::other("it panicked"))
}

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
    let directory = directory_of(path);
    // The umask removes further permissions.
    let file = temporary_with_mode(0o666).tempfile_in(directory)?;
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

/// Opens a plain file. Refuses anything else before it truncates.
pub(crate) fn open_plain(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    no_link(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Without this, a pipe without a writer blocks.
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_plain()) }
}

/// Opens a plain file like [`open_plain`], and creates it for the user and the group only, with any umask.
pub(crate) fn open_private(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o660);
    open_plain(path, options)
}

/// Restricts a lock file to users with write access: a reader could hold the lock.
pub(crate) fn keep_from_readers(file: &File) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = file.metadata().map_or(0, |found| found.permissions().mode() & 0o777);
        let fitting = (mode & 0o700) | ((mode & 0o022) * 3);
        if mode != fitting {
            // Only the owner can change it.
            let _of_someone_else = file.set_permissions(fs::Permissions::from_mode(fitting));
        }
    }
    #[cfg(not(unix))]
    let _has_no_modes = file;
}

/// Refuses a link. A free name is allowed.
pub(crate) fn no_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::other("it is a link, and shotlist follows none here; remove the link"))
        }
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The reason why a file can't be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is too long.
    #[error("must have at most {0} bytes")]
    TooLarge(u64),
    /// It isn't UTF-8.
    #[error("must be UTF-8")]
    NotText,
}

/// Reads a text file of the user, of at most `most` bytes, without a byte order mark. Follows links, and refuses pipes.
pub(crate) fn read_text(path: &Path, most: u64) -> Result<String, ReadError> {
    let text = String::from_utf8(read_at_most(path, most)?).map_err(|_| ReadError::NotText)?;
    Ok(match text.strip_prefix('\u{feff}') {
        Some(rest) => rest.to_owned(),
        None => text,
    })
}

/// Reads a file of the user, of at most `most` bytes. Follows links, and refuses pipes.
pub(crate) fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>, ReadError> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(libc::O_NONBLOCK);
    }
    let file = options.open(path)?;
    if !file.metadata()?.is_file() {
        return Err(not_plain().into());
    }
    let mut bytes = Vec::new();
    // Some systems have endless files of length zero.
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(ReadError::TooLarge(most)) } else { Ok(bytes) }
}

fn not_plain() -> io::Error {
    io::Error::other("it is not a plain file")
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
        replace(&path, |_, file| file.write_all(b"half").and(Err(ErrorKind::StorageFull.into()))).expect_err("full");
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

#[cfg(all(test, unix))]
mod unix_tests {
    use super::*;

    #[test]
    fn link_is_found_in_each_part_of_a_path() {
        let root = tempfile::tempdir().expect("a directory");
        let at = |name: &str| root.path().join(name);
        make_directories(&at("a/b/c")).expect("made");
        make_directories(&at("a/b/c")).expect("there");
        std::os::unix::fs::symlink(at("a"), at("link")).expect("a link");
        make_directories(&at("link/d")).expect("a person's own link");
        assert!(at("a/d").is_dir());
        for (path, is_fine) in [("a/b/c", true), ("a/new/x", true), ("link", false), ("link/b/c", false)] {
            assert_eq!(no_links_below(root.path(), &at(path)).is_ok(), is_fine, "{path}");
        }
        // Links above the directory are of the user.
        no_links_below(&at("link"), &at("link/b")).expect("below the link there is none");
    }

    #[test]
    fn readers_of_lock_file_are_its_writers() {
        use std::os::unix::fs::PermissionsExt as _;
        let file = tempfile::tempfile().expect("a file");
        for (found, kept) in [(0o644, 0o600), (0o640, 0o600), (0o664, 0o660), (0o660, 0o660), (0o666, 0o666)] {
            file.set_permissions(fs::Permissions::from_mode(found)).expect("a mode");
            keep_from_readers(&file);
            assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, kept, "{found:o}");
        }
    }

    #[test]
    fn opens_plain_files_only_and_waits_for_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "text").expect("a file");
        std::os::unix::fs::symlink(at("file"), at("link")).expect("a link");
        std::os::unix::fs::symlink(at("nothing"), at("dangling")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo is there");
        assert!(made.success());
        let open = |name: &str| open_plain(&at(name), File::options().read(true).write(true).create(true));
        open("file").expect("a plain file");
        open("new").expect("a new file");
        for name in ["link", "dangling", "pipe", "."] {
            assert!(open(name).is_err(), "{name} was opened");
        }
        assert!(!at("nothing").exists(), "a file was made through a link");
        assert_eq!(read_at_most(&at("link"), 4).expect("a person's own link"), b"text");
        assert!(matches!(read_at_most(&at("file"), 3), Err(ReadError::TooLarge(3))));
        for name in ["pipe", ".", "/dev/zero"] {
            assert!(matches!(read_at_most(&at(name), 9), Err(ReadError::Io(_))), "{name} was read");
        }
    }
}
