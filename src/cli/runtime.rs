//! Runtime of a command.

use super::failure::Failure;

/// Does something to its end. On one thread: a command waits, and waking another thread for each answer costs more than all
/// the rest.
pub(super) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::cannot_write(&error))?;
    let done = runtime.block_on(work);
    // A download that was given up may still be writing.
    runtime.shutdown_background();
    done
}
