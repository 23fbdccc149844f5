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
//! [`any`] is the way in: a [`Ledger`] for reads, in any store. A [`LockedBatch`] is the right to buy; [`writing`] sends what it records to the
//! one writer of a store, and [`sql`] has what all stores understand. [`sqlite`] is the store in a file of this machine, and [`postgres`] the store that several machines share. A store knows its medium and no rule.
//!
//! [`mod@event`] has the states of an attempt, [`row`] is an attempt in a store, and [`value`] a value of a statement. [`intent`], [`views`], [`limits`], [`sharing`], and [`error`] are
//! the inputs and outputs, [`mod@transfer`] is a whole ledger, and [`mod@crash`] has the places where tests kill.

mod any;
mod crash;
mod error;
mod event;
mod intent;
mod limits;
mod postgres;
mod row;
mod rules;
mod sharing;
mod sql;
mod sqlite;
#[cfg(test)]
mod suite;
mod transfer;
mod value;
mod views;
mod writing;

pub use any::{Ledger, LedgerAddress};
pub use error::{HoldError, LedgerError, Unavailable};
pub(crate) use event::GIVEN_UP;
pub use event::{Event, IllegalEvent};
pub use intent::{Approval, Intent, SpendLimit};
pub use limits::{LedgerLimit, Span};
pub use postgres::{AddressError, PostgresAddress, PostgresLedger};
pub use sharing::this_machine;
pub(crate) use sqlite::OWN_FOLDER;
pub use sqlite::SqliteLedger;
pub use transfer::{Contents, CopyError};
pub use views::{BoughtElsewhere, Controls, OpenElsewhere, Spending};
pub use writing::LockedBatch;
