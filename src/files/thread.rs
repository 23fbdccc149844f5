//! Threads for what waits for the disk.

use std::io;

use tokio::sync::oneshot;

/// Does what waits for the disk on a thread of its own, so that a run that goes on beside it is not held up. Fails where no
/// thread can be had, and where the work panicked: neither may take down whoever waits.
pub(crate) async fn on_a_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (answer, answered) = oneshot::channel();
    // Not one of the runtime's: those panic where the system has none to give.
    std::thread::Builder::new().name("disk".to_owned()).spawn(move || drop(answer.send(work())))?;
    answered.await.map_err(|_| io::Error::other("it panicked"))
}
