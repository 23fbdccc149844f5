//! The store in an SQLite file, for runners on one machine.
//!
//! # What each system promises
//!
//! | promise | Unix | Windows |
//! |---|---|---|
//! | a commit survives power loss | SQLite calls `fsync` | SQLite calls `FlushFileBuffers` |
//! | one run has a batch, and a killed one has none | `flock` | `LockFileEx` |
//! | a new file keeps its name | its directory is synced | no call says so; nothing was submitted before the first commit to it |
//!
//! A share of another machine keeps neither of the first two for certain. SQLite itself refuses a log on most; on Windows, [`mod@open`] refuses a
//! ledger on a share.
//!
//! # Modules
//!
//! [`mod@file`] answers questions and locks batches; [`lock`] lets one runner have a batch, because the kernel drops it with the process. [`mod@open`]
//! opens the file, and refuses what is not a ledger ([`refusals`]). [`schema`] creates and recognizes the tables, and [`checksum`] verifies
//! their rows. [`commit_counter`] notices a ledger that went back in time.
//!
//! [`store`] and [`transaction`] write attempts, by [`statements`]; [`read`] reads one batch, [`mod@freeze`] is about the freeze, and
//! [`backup`] copies and verifies a file, [`transfer`] reads and writes everything.

mod backup;
mod checksum;
mod commit_counter;
mod file;
mod freeze;
mod lock;
mod open;
mod read;
mod refusals;
mod schema;
mod statements;
mod store;
mod transaction;
mod transfer;

pub use file::SqliteLedger;
pub(crate) use open::OWN_FOLDER;
