//! The store in an SQLite file, for runners on one machine.
//!
//! # Promises of each system
//!
//! | promise | Unix | Windows |
//! |---|---|---|
//! | a commit survives power loss | SQLite calls `fsync` | SQLite calls `FlushFileBuffers` |
//! | a batch lock is exclusive, and ends with its process | `flock` | `LockFileEx` |
//! | a new file keeps its name | its directory is synced | undocumented; the first submission comes after the first commit to the file |
//!
//! A network share may break the first two. SQLite refuses a log on most shares; on Windows, [`mod@open`] refuses a ledger on a share.
//!
//! # Modules
//!
//! [`mod@file`] executes queries, locks batches, and copies a whole file. [`mod@open`] opens the file, and recognizes a ledger by its [`schema`]. Its
//! checksums verify rows. [`beside`] has the locks, and detects a ledger that was restored or replaced. [`store`] reads and writes rows.

mod beside;
mod file;
mod open;
mod schema;
mod store;

pub use file::SqliteLedger;
pub(crate) use open::OWN_FOLDER;
