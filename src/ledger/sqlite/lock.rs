//! One runner for a batch at a time.
//!
//! A kernel lock on a small file beside the ledger: it goes with the process, however that ends, so there is nothing to
//! clean up after a crash and no stale lock to remove by hand. The file itself stays, because removing it would let
//! two runs hold locks on two files of one name.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::refusals::failed;
use crate::domain::{BatchKey, hex};
use crate::files::{keep_from_readers, open_private, sweep};
use crate::ledger::HoldError;

/// The right to run a batch, for as long as it lives.
#[derive(Debug)]
pub(in crate::ledger) struct RunLock {
    file: File,
}

impl Drop for RunLock {
    /// Releases the lock even if a program that is starting has inherited the file, and has not closed it yet.
    fn drop(&mut self) {
        let _closed_anyway = self.file.unlock();
    }
}

impl RunLock {
    /// Takes the lock of a batch in a ledger that is there, or says who has it. Never waits.
    ///
    /// The lock is beside the file that the path leads to, so that two names of one ledger share it.
    pub(super) fn acquire(ledger: &Path, batch: &BatchKey) -> Result<Self, HoldError> {
        let fault = |path: &Path, source| failed("create lock file", path, source);
        let real = std::fs::canonicalize(ledger).map_err(|source| fault(ledger, source))?;
        let path = lock_path(&real, batch);
        sweep(real.parent().unwrap_or(Path::new(".")));
        let fault = |source| fault(&path, source);
        let mut options = File::options();
        let mut file =
            open_private(&path, options.read(true).write(true).create(true).truncate(false)).map_err(fault)?;
        keep_from_readers(&file);
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                // Only for the message; without it the message is shorter.
                let _unreadable = file.read_to_string(&mut holder);
                let holder = if holder.is_empty() { holder } else { format!(" ({})", holder.trim()) };
                return Err(HoldError::Busy { batch: batch.clone(), holder });
            }
            Err(TryLockError::Error(source)) => return Err(fault(source).into()),
        }
        let note = format!("process {}, since {}\n", std::process::id(), jiff::Timestamp::now().strftime("%F %T UTC"));
        let noted = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(note.as_bytes()));
        noted.map_err(fault)?;
        Ok(Self { file })
    }
}

/// Beside the ledger, with a name that any batch value can make.
fn lock_path(ledger: &Path, batch: &BatchKey) -> PathBuf {
    let digest = Sha256::digest(format!("{}\0{}", batch.name, batch.batch));
    let mut name = ledger.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.lock", hex(&digest[..8])));
    ledger.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runner_for_a_batch() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = directory.path().join("ledger.db");
        std::fs::write(&ledger, "").expect("a file");
        let batch = |batch: &str| BatchKey { name: "n".into(), batch: batch.into() };
        let held = RunLock::acquire(&ledger, &batch("a")).expect("a lock");
        let error = RunLock::acquire(&ledger, &batch("a")).expect_err("a second lock");
        assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
        RunLock::acquire(&ledger, &batch("b")).expect("another batch");
        #[cfg(unix)]
        {
            let other_name = directory.path().join("link.db");
            std::os::unix::fs::symlink(&ledger, &other_name).expect("a link");
            RunLock::acquire(&other_name, &batch("a")).expect_err("the same ledger by another name");
        }
        let _inherited = held.file.try_clone().expect("the same file");
        drop(held);
        RunLock::acquire(&ledger, &batch("a")).expect("the lock again");
    }
}
