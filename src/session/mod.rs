//! The steps of a run, from a manifest to reports, in the one order that is safe for money.
//!
//! # Guarantees
//!
//! - No step can be left out: each is a value that only the one before it returns.
//! - Everything that can refuse a run refuses it before the first submission, as a [`Refusal`].
//! - Dropping one of these values, or the future of a run, leaves the ledger as a kill at that moment would.
//! - Only this module and the engine write to a ledger.
//!
//! # Design
//!
//! | Value | What is certain | Next |
//! |---|---|---|
//! | [`Session`] | the manifest is valid; nothing is locked, sent, or written | a [`Plan`](crate::plan::Plan) to show, or a [`Locked`] |
//! | [`Locked`] | no other runner has the batch, and the plan is from the current ledger | a [`Ready`] |
//! | [`Ready`] | no spend limit is exceeded, and the service knows the active tasks | with a [`Confirmation`] that covers the plan, an [`Outcome`] |
//!
//! # Modules
//!
//! [`start`], [`locked`], and [`run`] are the steps. [`options`] and [`connection`] are their input, and [`refusal`] ends them early.
//! [`purchases`] makes the plan, with spend limits and the purchases of earlier batches. A run also finishes [`other_batches`] of the same
//! name. [`executor`] starts a hook for each video, and [`reporter`] writes reports.
//!
//! [`resolve`] records verdicts about doubts, and the charges of a bill. [`import`] records tasks that the ledger lacks, [`choices`] records
//! choices and archived videos, and [`start`] the limits over all manifests. [`spend`] adds up what was spent.

mod choices;
mod connection;
mod executor;
mod import;
mod locked;
mod options;
mod other_batches;
mod purchases;
mod refusal;
mod reporter;
mod resolve;
mod run;
pub(crate) mod spend;
mod start;

pub use super::download::CopyVideoError;
pub use super::engine::{Outcome as EngineOutcome, RunEvent, Settings, Stop, StopReason, echo_differences};
pub use super::files::NoZone;
pub use super::hooks::{InvalidCommand, Program};
pub use choices::{ChoicesFile, InvalidChoices, valid_reviewer};
pub use connection::{Connection, ConnectionError, ConnectionOptions, OtherAccount, SIMULATOR_SPEED};
pub use import::{BoughtTask, ImportOutcome};
pub use locked::{Confirmation, Locked, Ready};
pub use options::{DefaultPaths, Options, RepeatOptions, Replaces, ThroughALink};
pub use refusal::{PassedLimits, Refusal, UnknownPurchases};
pub use reporter::Reported;
pub use resolve::{BatchView, Resolution, ResolveError, Verdict, settle_bill};
pub use run::Outcome;
pub use start::{LedgerLimits, Session};
