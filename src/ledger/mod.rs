//! The truth about what was bought. Reports are views of it.
//!
//! # What it promises
//!
//! An intent to submit is durable before the first byte of the request leaves, and a task id is durable before the
//! first poll of the task. If the intent can't be written, nothing is sent. SQLite in WAL mode with
//! `synchronous=FULL` makes a commit survive the loss of power, not only of the process.
//!
//! # The crash argument
//!
//! One attempt passes these instants. Wherever the process, the machine or the disk dies, the next start finds the
//! attempt in the state of the last commit, and concludes:
//!
//! | it dies | the ledger says | the next start concludes |
//! |---|---|---|
//! | before the intent is committed | nothing | nothing was sent: the job is due |
//! | after the intent, before the request leaves | intended | **in doubt**: it can't be told from the next line |
//! | after the request leaves, before the answer is committed | intended | **in doubt**: it may have been charged |
//! | while the service asks to wait | void | nothing was bought: due again; the next request has its own intent |
//! | after a task id is committed | queued | the task is at the service: polled on |
//! | after a refusal is committed | rejected or void | no task exists: due again |
//! | after the final word arrived, before it is committed | queued or in progress | polled again, same answer |
//! | after the final word is committed | completed or failed | nothing is due |
//! | while a video is fetched | completed, without a file | the video is fetched, from where its part ends |
//! | while the ledger is first made | nothing, beside a hidden file | a new one is made: nothing was sent before it had its name |
//! | after a video got its name, before that is committed | completed, without a file | fetched again, found to be there, and written down |
//!
//! The conclusion of lines two and three is drawn where a batch is taken ([`Ledger::hold`]), and nowhere else: an intent that is
//! found there has nobody left who waits for its answer. Where a second runner got in all the same, as on some network file
//! systems, the store refuses a second open attempt of a job.
//!
//! A disk that is full is the same argument without a crash: an intent that can't be written is not sent, an id that
//! can't be written is told to the person, and submitting stops.
//!
//! # One door
//!
//! Whoever reads asks a [`Ledger`], in the words of the domain. Whoever buys needs a [`HeldBatch`], a value that exists only
//! while the batch is held: it alone can write an [`Intent`], and to hold a batch is to conclude what a crash left of it. No path, no
//! SQL and no type of a store crosses this door: there is one in a file of this machine, and one that machines share.
//! What every store has to keep is a suite of tests against that door alone.
//!
//! # The rooms inside
//!
//! [`interface`] is the door; [`intent`], [`views`], [`owner`], [`sharing`] and [`error`] are what goes through it. [`mod@event`] is the life of an attempt as
//! a pure state machine, [`stored`] an attempt as a row, [`mod@transfer`] a whole ledger on its way. [`sqlite`] is the store in a file of this machine, [`postgres`] the one
//! in a database, [`any`] either of them. [`mod@times`] says how long runners wait for one another, [`mod@crash`] holds the places at which the tests kill.

mod any;
mod crash;
mod error;
mod event;
mod intent;
mod interface;
mod owner;
mod postgres;
mod sharing;
mod sqlite;
mod stored;
#[cfg(test)]
mod suite;
mod times;
mod transfer;
mod views;

pub use any::{AnyBatch, AnyLedger, BackupError};
pub use error::{HoldError, LedgerError, Unavailable};
pub(crate) use event::GIVEN_UP;
pub use event::{Event, IllegalEvent};
pub use intent::{Approval, Intent, RunLimit, SpendLimit};
pub use interface::{HeldBatch, Ledger};
pub use owner::{LedgerLimit, Span};
pub use postgres::{AddressError, PostgresAddress, PostgresBatch, PostgresLedger};
pub use sharing::{Joining, Others, this_machine};
pub(crate) use sqlite::OWN_FOLDER;
pub use sqlite::{CheckError, Contents, SqliteBatch, SqliteLedger};
pub use transfer::CopyError;
pub use views::{BoughtElsewhere, OpenElsewhere, Spending};
