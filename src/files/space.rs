//! Disk work on threads of its own, and a check of free space.

use std::io::{self, Write as _};
use std::path::Path;

use tokio::sync::oneshot;

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
