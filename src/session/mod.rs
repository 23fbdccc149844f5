//! The steps of a run, from a manifest to reports, in the one order that is safe for money.
//!
//! # Guarantees
//!
//! - No step can be left out: each is a value that only the one before it returns.
//! - Everything that can refuse a run refuses it before the first submission, as a [`Refusal`].
//! - If one of these values is dropped, or the future of a run, the ledger is as after a kill at that moment.
//! - Only this module and the engine write to a ledger.
//!
//! # Design
//!
//! | Value | What is certain | Next |
//! |---|---|---|
//! | [`Session`] | the manifest is valid; nothing is locked, asked, or written | a [`Plan`](crate::plan::Plan) to show, or a [`Locked`] |
//! | [`Locked`] | no other runner has the batch, and the plan is of what the ledger says now | a [`Ready`] |
//! | [`Ready`] | no spend limit is exceeded, and the service knows the active tasks | with a [`Confirmation`] that covers the plan, an [`Outcome`] |
//!
//! # Modules
//!
//! [`start`], [`locked`], [`ready`], and [`run`] are the steps. [`options`], [`connection`], and [`default_paths`] are their
//! input, and [`refusal`] ends them early. [`planning`] makes the plan, with [`ledger_limits`] and the [`purchases`] of earlier batches; [`outputs`] guards the
//! files of a run. A run also finishes [`other_batches`] of the same name. [`executor`] starts a program for each video. [`reporter`] writes reports during a run and without one.
//!
//! [`resolve`] lists jobs in doubt and records verdicts, and [`reconcile`] compares a bill with the ledger. [`import`] records tasks that the ledger lacks, [`choices`] records what reviewers chose, [`archive`] archived videos, and
//! [`ledger_limits`] the limits over all manifests.

mod archive;
mod choices;
mod connection;
mod default_paths;
mod executor;
mod import;
mod ledger_limits;
mod locked;
mod options;
mod other_batches;
mod outputs;
mod planning;
mod purchases;
mod ready;
mod reconcile;
mod refusal;
mod reporter;
mod resolve;
mod run;
mod start;

pub use choices::{ChoicesFile, InvalidChoices};
pub use connection::{Connection, ConnectionError, ConnectionOptions, OtherAccount, SIMULATOR_SPEED};
pub use default_paths::{DefaultPaths, ThroughALink};
pub use import::{BoughtTask, ImportOutcome};
pub use ledger_limits::{LedgerLimits, LimitChange};
pub use locked::Locked;
pub use options::{Options, RepeatOptions};
pub use other_batches::FinishedBatch;
pub use outputs::Replaces;
pub use ready::Confirmation;
pub use ready::Ready;
pub use reconcile::Reconciliation;
pub use refusal::Refusal;
pub use reporter::Reported;
pub(crate) use resolve::CLOCK_DIFFERENCE;
pub use resolve::{BatchView, Resolution, ResolveError, Verdict};
pub use run::Outcome;
pub use start::Session;

pub use crate::download::CopyVideoError;
pub use crate::engine::{Outcome as EngineOutcome, RunEvent, Settings, Stop, StopReason, echo_differences};
pub use crate::files::NoZone;
pub use crate::hooks::{AssetCommand, NoCommand, Program};
