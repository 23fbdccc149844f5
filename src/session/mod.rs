//! From a manifest to reports, in the one order that keeps money safe.
//!
//! Each step is a value that only the one before it gives, so that none can be left out and none can come too early:
//!
//! | value | what is certain | what it gives |
//! |---|---|---|
//! | [`Session`] | the manifest is sound; nothing is locked, asked or written | a [`Plan`](crate::plan::Plan) to show, or a [`Locked`] |
//! | [`Locked`] | no other runner is at the batch, what a crash left is concluded, and the plan is made anew of what the ledger says now | a [`Ready`] |
//! | [`Ready`] | no limit on spending is passed, and the service can see the tasks that are at it | with a [`Consent`] that covers the plan, an [`Outcome`] |
//!
//! Everything that can refuse a run refuses it before the first submission, as a [`Refusal`]. Whoever drops one of these values,
//! or the future of a run, leaves in the ledger what a kill at that moment would leave.
//!
//! # The rooms inside
//!
//! [`start`], [`locked`], [`ready`], [`run`] and [`outcome`] are the steps, [`options`], [`consent`], [`connection`] and [`default_paths`] what they
//! are given, and [`refusal`] what ends them early. [`outputs`] guards the files of a run against its videos. [`planning`] makes the plan, with [`limits`] and what [`purchases`] finds to have been bought before.
//! [`resolve`] lists what is in doubt and records verdicts, [`reconcile`] what a bill settles, [`ledger_limits`] the limits over all manifests.
//! [`other_batches`] looks after other batches of the same name, and [`pending_reports`] remembers them. [`shared_batch`] feeds a run with what other runners of its batch left. [`executor`] starts a program for each video. [`reporter`] writes reports beside the run, [`report_only`] without one.

mod connection;
mod consent;
mod default_paths;
mod executor;
mod ledger_limits;
mod limits;
mod locked;
mod options;
mod other_batches;
mod outcome;
mod outputs;
mod pending_reports;
mod planning;
mod purchases;
mod ready;
mod reconcile;
mod refusal;
mod report_only;
mod reporter;
mod resolve;
mod run;
mod shared_batch;
mod start;

pub use connection::{Connection, ConnectionError, ConnectionOptions, OtherAccount, SIMULATOR_SPEED};
pub use consent::Consent;
pub use default_paths::{DefaultPaths, ThroughALink};
pub use ledger_limits::{LedgerLimits, LimitChange};
pub use locked::Locked;
pub use options::{Options, RedoOptions};
pub use outcome::{Collected, Outcome};
pub use outputs::Replaces;
pub use ready::Ready;
pub use reconcile::Reconciliation;
pub use refusal::Refusal;
pub use reporter::{Reported, ReporterError};
pub use resolve::{BatchView, Doubts, Resolution, ResolveError, Verdict};
pub use start::Session;

pub use crate::engine::{Outcome as EngineOutcome, RunEvent, Settings, Stop, StopReason, echo_differences};
pub use crate::hooks::{AssetCommand, NoCommand, Program};
