//! One file for each command.

mod completions;
mod dispatch;
mod init;
mod ledger;
mod proposal;
mod reconcile;
mod report;
mod resolve;
mod run;
mod sandbox;
mod schema;
mod spend;
mod status;

pub(super) use dispatch::obey;
