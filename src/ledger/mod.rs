//! The durable record of attempts. Reports are views of it.
//!
//! # Guarantees
//!
//! - An intent is durable before the first byte of its request leaves. If it can't be written, nothing is sent.
//! - A task ID is durable before the task is polled, and before the next intent.
//! - Every rule exists once, in [`rules`], whatever store keeps the attempts.
//!
//! # The crash argument
//!
//! Wherever the process, the machine, or the disk dies, the next run finds the attempt as the last commit left it:
//!
//! | it dies | state in the ledger | the next run |
//! |---|---|---|
//! | before the intent is committed | none | nothing was sent: the job is due |
//! | after the intent, before the request leaves | intended | **in doubt**: it looks like the next line |
//! | after the request leaves, before the response is committed | intended | **in doubt**: it may have been charged |
//! | while the service asks to wait | void | nothing was bought: due again, with a new intent for each request |
//! | after a task ID is committed | queued | polls the task |
//! | after a refusal is committed | rejected or void | no task exists: due again |
//! | after the final response, before it is committed | queued or in progress | polls again, and gets the same response |
//! | after the final response is committed | completed or failed | nothing is due |
//! | while a video is downloaded | completed, without a file | resumes the download |
//! | while the ledger is created | none, beside a hidden file | creates it: nothing was sent before it had its name |
//! | after a video got its name, before that is committed | completed, without a file | finds the video, and records it |
//!
//! [`Ledger::lock`] puts intents without a response in doubt, and nothing else does: no run waits for their response any more. Where a second
//! run gets in anyway, as on some network file systems, the rules refuse a second open attempt of a job.
//!
//! A full disk is the same argument without a crash: an intent that can't be written is not sent, a task ID that can't be written is shown,
//! and submitting stops.
//!
//! # Modules
//!
//! Callers see a [`Ledger`], which reads any store, and a [`LockedBatch`], which is the right to buy. Below them, [`writer`] groups what locked
//! batches send into transactions of [`operations`], which apply the [`rules`]. At the bottom, a [`store`] knows its medium and no rule: [`sqlite`] in
//! a file of this machine, [`postgres`] for several machines. [`mod@sql`] has the statements of both.
//!
//! [`mod@event`] has the states of an attempt, and [`mod@row`] an attempt in a store. [`mod@intent`] is what is asked of the rules, and [`mod@copy`]
//! carries a whole ledger from one store to another. [`reader`] is the [`Ledger`], and [`mod@locked`] the [`LockedBatch`].

mod copy;
mod error;
mod event;
mod intent;
mod locked;
mod operations;
mod postgres;
mod reader;
mod row;
mod rules;
mod sql;
mod sqlite;
mod store;
#[cfg(test)]
mod suite;
mod views;
mod writer;

pub use error::{CopyError, HoldError, LedgerError, Unavailable};
pub(crate) use event::GIVEN_UP;
pub use event::{Event, IllegalEvent};
pub use intent::{Approval, Intent, LedgerLimit, Span, SpendLimit};
pub use locked::{LockedBatch, this_machine};
pub use postgres::{AddressError, PostgresAddress, PostgresLedger};
pub use reader::{Ledger, LedgerAddress};
pub(crate) use sqlite::OWN_FOLDER;
pub use sqlite::SqliteLedger;
pub use views::{BoughtElsewhere, Contents, Controls, OpenElsewhere, Spending};
