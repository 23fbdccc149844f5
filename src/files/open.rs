//! Opens plain files: no links, pipes, or devices.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

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
            Err(io::Error::other("it is a link, and shotlist writes through none; remove the link"))
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

#[cfg(all(test, unix))]
mod tests {
    use super::*;

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
