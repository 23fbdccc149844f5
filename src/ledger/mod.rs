//! The durable record of attempts. Reports are views of it.
//!
//! # Guarantees
//!
//! - An intent is durable before the first byte of its request leaves. If it can't be written, nothing is sent.
//! - A task ID is durable before the task is polled, and before the next intent.
//! - Every rule exists once, in [`rules`], for all stores.
//!
//! # The argument
//!
//! After a crash of the process, the machine, or the disk, the next command finds the ledger as of the last commit. For runs, tests kill at each
//! commit (`killed_at_every_single_write_of_the_ledger`), at each step of a request (`killed_at_every_boundary_of_a_request`), and in a download
//! (`killed_download_continues_in_the_next_run`). The people of `tests/endurance/people.rs` mix runs and other commands.
//!
//! | a run dies | state of the attempt | the next run |
//! |---|---|---|
//! | before the intent is committed | none | nothing was sent: the job is due |
//! | after the intent, before the request leaves | intended | **in doubt**: the ledger can't distinguish it from the next line |
//! | after the request leaves, before the response is committed | intended | **in doubt**: it may have been charged |
//! | while the service requests a pause | void | nothing was bought: due again, with a new intent for each request |
//! | after a task ID is committed | queued | polls the task |
//! | after a refusal is committed | rejected or void | no task exists: due again |
//! | after the final response, before it is committed | queued or in progress | polls again, and gets the same response |
//! | after the final response is committed | completed or failed | nothing is due |
//! | while a video is downloaded | completed, without a file | resumes the download |
//! | after a video got its name, before that is committed | completed, without a file | finds the video, and records it |
//! | while the ledger is created | none, and a hidden file | creates it: nothing was sent before it had its name |
//! | between two retakes of a pattern | the retake is recorded as unfinished | the same patterns continue it (`retake_by_a_pattern_continues_after_a_kill`) |
//!
//! [`Ledger::lock`] puts the intents of a process that is gone in doubt: no run waits for their response any more.
//!
//! | another command dies | state | why nothing is paid twice or lost |
//! |---|---|---|
//! | `import`, between its commits for a task | an intent, or a doubt declared as found | the job is not due, and the same command finishes that doubt (`killed_import_continues`) |
//! | `resolve`, `resolve --undo` | each job before its one commit or after it | a verdict is taken back only until something was bought on it (`statement_can_be_undone_until_a_purchase`) |
//! | `resolve --abandon` | the task active, or failed and declared as lost | its charge stays unknown or charged; only a run that retries failures buys again (`endless_task_can_be_abandoned_and_bought_again`) |
//! | `archive`, for a video | a copy, then the record, then no original | the original goes last, and the same command continues (`random_choices_buy_each_agreed_retake_once`) |
//! | `ledger copy` | the source frozen, and no copy, or a committed one | the freeze comes before the first read; a new file gets its name after the verification, and an empty ledger is filled in one transaction; only the user ends the freeze (`copy_to_small_disk_is_whole_or_refused`) |
//! | `ledger backup` | no file, or a whole one | it only reads, and a backup that is brought back is an older ledger (`interrupted_backup_leaves_no_file`) |
//! | an older ledger takes the place of this one | fewer commits than its counter | refused until the user confirms it (`restored_backup_is_refused_and_can_be_accepted`) |
//! | two processes run without a working lock | both may record intents | the rules refuse a second open attempt of a job (`two_runners_without_a_lock_buy_no_job_twice`) |
//!
//! A full disk is the same argument without a crash: an intent that can't be written is not sent, a task ID that can't be written is shown, and
//! submitting stops (`full_disk_after_a_submission_prints_the_task_id`).
//!
//! # Modules
//!
//! Callers see a [`Ledger`], which reads any store, and a [`LockedBatch`], which is the right to buy. Below them, [`writer`] groups the operations of locked
//! batches into transactions of a [`store`], which apply the [`rules`]. A store knows its medium and no rule: [`sqlite`] in
//! a file of this machine, [`postgres`] for several machines. [`mod@sql`] has the statements of both.
//!
//! [`mod@record`] has the intents and events that a run records, the input of the rules, and [`mod@row`] an attempt in a store. [`reader`] is the
//! [`Ledger`] and its copies, and [`mod@locked`] the [`LockedBatch`].

mod error;
mod locked;
mod postgres;
mod reader;
mod record;
mod row;
mod rules;
mod sql;
mod sqlite;
mod store;
#[cfg(test)]
mod suite;
mod views;
mod writer;

pub(crate) use error::RUNNER_MAY_LIVE;
pub use error::{AddressError, CopyError, HoldError, LedgerError, Unavailable};
pub use locked::{LockedBatch, this_machine};
pub use postgres::{PostgresAddress, PostgresLedger};
pub use reader::{Ledger, LedgerAddress};
pub(crate) use record::GIVEN_UP;
pub use record::{Approval, Event, IllegalEvent, Intent, LedgerLimit, Span, SpendLimit};
pub(crate) use sqlite::OWN_FOLDER;
pub use sqlite::SqliteLedger;
pub use views::{BoughtElsewhere, Contents, Controls, Spending};
