//! Directories that last: each is synced into the one above, and none that is made or used below a given one is a link.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use tokio::sync::oneshot;

use super::open::no_link;

/// Makes a directory and those above it that are missing, each as durable as a file in it.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_directories(above)?;
    }
    match fs::create_dir(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| sync_directory(path)),
    }
}

/// Creates a directory that only the user and the group may enter, whatever the umask is, and the missing directories above it.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        make_directories(above)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has a mode to set"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o770);
    match builder.create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.and_then(|()| sync_directory(path)),
    }
}

/// Refuses a path on which anything below this directory is a link. What is not there yet is fine.
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

/// Makes the contents of a file durable that was written by another handle. Windows does that only for who may write.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    fs::File::options().read(true).write(cfg!(windows)).open(path)?.sync_all()
}

/// Makes the name of a file or directory as durable as what it names. Only where directories can be synced: elsewhere the system
/// says nothing of how long a name lasts.
pub(crate) fn sync_directory(file: &Path) -> io::Result<()> {
    let Some(directory) = file.parent().filter(|_| cfg!(unix)) else { return Ok(()) };
    let directory = if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
    fs::File::open(directory)?.sync_all()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_found_wherever_it_is_on_the_way() {
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
        // Links above the directory are the user's own.
        no_links_below(&at("link"), &at("link/b")).expect("below the link there is none");
    }
}

/// The number of bytes that are tried: more than a file system with quotas or reserved blocks gives away.
const TRIED: usize = 1 << 20;

/// Writes a temporary file into a directory, or into the nearest one above it that exists, and removes it. Returns the number of free bytes, where
/// the system tells it.
pub(crate) fn try_write(directory: &Path) -> io::Result<Option<u64>> {
    let absolute = std::path::absolute(if directory.as_os_str().is_empty() { Path::new(".") } else { directory })?;
    let nearest = absolute.ancestors().find(|above| above.exists()).unwrap_or(&absolute);
    let mut file = super::temporary().tempfile_in(nearest)?;
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

/// Does what waits for the disk on a thread of its own, so that a run that goes on beside it is not held up. Fails where no
/// thread can be had, and where the work panicked: neither may take down whoever waits.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (answer, answered) = oneshot::channel();
    // Not one of the runtime's: those panic where the system has none to give.
    std::thread::Builder::new().name("disk".to_owned()).spawn(move || drop(answer.send(work())))?;
    answered.await.map_err(|_| io::Error::other("it panicked"))
}
