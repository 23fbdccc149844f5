//! The commands.

mod archive;
mod choose;
mod dispatch;
mod doctor;
mod help;
mod import;
mod init;
mod ledger;
mod reconcile;
mod resolve;
mod run;
mod sandbox;
mod spend;
mod status;

pub(super) use dispatch::execute;
