//! A ledger in an SQLite file, for runners on one machine.
//!
//! [`file`](mod@file) is the way in: it answers questions, and takes batches. [`mod@open`] opens the file and refuses what is not
//! ours, [`schema`] creates and recognizes the tables, and [`checksum`] verifies their rows; [`columns`] lists those of an attempt. [`write`](mod@write) and [`read`] are the SQL of one batch, with [`refused`] for what no write may do, [`limits`] the owner's limits, [`books`] that of sums over all of
//! them, [`purchases`] that of who bought what. [`held`] is a batch that is held, and groups commits on a thread of its own, so that a
//! slow disk never stalls the stream. [`lock`] lets one runner at a batch: the kernel drops it with the process. [`witness`] notices a ledger that went back in
//! time. [`backup`] copies and verifies, [`transfer`] carries all of it into another store and back.

mod addresses;
mod backup;
mod books;
mod checksum;
mod columns;
mod file;
mod held;
mod limits;
mod lock;
mod open;
mod purchases;
mod read;
mod refused;
mod schema;
mod transfer;
mod witness;
mod write;

pub use backup::{CheckError, Contents};
pub use file::SqliteLedger;
pub use held::SqliteBatch;
pub(crate) use open::OWN_FOLDER;
