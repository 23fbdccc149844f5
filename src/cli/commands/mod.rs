//! One file for each command.

mod archive;
mod choose;
mod dispatch;
mod doctor;
mod fetch;
mod help;
mod import;
mod init;
mod ledger;
mod limit;
mod man;
mod proposal;
mod reconcile;
mod resolve;
mod run;
mod sandbox;
mod schema;
mod spend;
mod status;

pub(super) use dispatch::execute;
