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
//! [`mod@file`] answers questions and locks batches. [`mod@open`] opens the file, and refuses what is not a ledger by its [`schema`]. [`checksum`]
//! verifies rows, and [`beside`] has the locks, and notices a ledger that went back in time. [`store`] writes attempts by [`statements`], and
//! [`mod@copy`] reads, writes, and verifies a whole file.

mod beside;
mod checksum;
mod copy;
mod file;
mod open;
mod schema;
mod statements;
mod store;

pub use file::SqliteLedger;
pub(crate) use open::OWN_FOLDER;
