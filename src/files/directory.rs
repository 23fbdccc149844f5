//! Durable directories: each is synced into its parent, and none below a given directory is a link.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use tokio::sync::oneshot;

use super::open::no_link;

/// Creates a directory and its missing parents, each durable.
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

/// Creates a directory for the user and the group only, with any umask, and its missing parents.
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

/// Syncs the contents of a file that another handle wrote. Windows requires a handle with write access.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    fs::File::options().read(true).write(cfg!(windows)).open(path)?.sync_all()
}

/// Syncs the name of a file or directory, where directories can be synced. Other systems document no durability of names.
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
        // Links above the directory are of the user.
        no_links_below(&at("link"), &at("link/b")).expect("below the link there is none");
    }
}

/// The number of tested bytes: more than reserved blocks or a used-up quota leave.
const TRIED: usize = 1 << 20;

/// Writes and removes a temporary file in a directory, or in its nearest existing parent. Returns the number of free bytes, if the system reports it.
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

/// Runs disk work on a separate thread, so it does not block the run. Returns an error if no thread can start, or if the work panics.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (answer, answered) = oneshot::channel();
    // Not a thread of the runtime, which panics without a free one.
    std::thread::Builder::new().name("disk".to_owned()).spawn(move || drop(answer.send(work())))?;
    answered.await.map_err(|_| io::Error::other("it panicked"))
}
