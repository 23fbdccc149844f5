//! The store in an SQLite file, for runners on one machine.
//!
//! [`mod@file`] answers questions and locks batches; [`lock`] lets one runner have a batch, because the kernel drops it with the process. [`mod@open`]
//! opens the file, and refuses what is not a ledger. [`schema`] creates and recognizes the tables, [`columns`] lists those of an attempt, and [`checksum`]
//! verifies their rows. [`commit_counter`] notices a ledger that went back in time.
//!
//! [`store`] and [`transaction`] write, [`rows`] are attempts; [`read`] reads one batch, [`purchases`] other batches, [`spending`] sums over all of them,
//! [`limits`] the ledger limits, and [`image_urls`] the URLs of local images. [`backup`] copies and verifies a file, [`transfer`] reads and writes
//! everything.

mod backup;
mod checksum;
mod columns;
mod commit_counter;
mod file;
mod image_urls;
mod limits;
mod lock;
mod open;
mod purchases;
mod read;
mod rows;
mod schema;
mod spending;
mod store;
mod transaction;
mod transfer;

pub use file::SqliteLedger;
pub(crate) use open::OWN_FOLDER;
