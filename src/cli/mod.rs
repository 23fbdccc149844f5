//! The command line: the only module that knows all others, and the only one that turns outcomes into exit codes.
//!
//! [`args`] has the arguments, and [`commands`] a file for each command. [`manifest`] loads the manifest and the catalog, [`paths`] has the paths of
//! ledger, reports, and videos, and [`service`] the address, the key, and the connection. [`confirm`] asks before money is spent, and [`requested`] has the
//! options of a run and checks its hooks. [`runtime`] runs a command until its end or a signal; [`ending`], [`exit`], [`failure`], and [`refusal`] end it.

mod approved;
mod args;
mod choices;
mod commands;
mod confirm;
mod ending;
mod environment;
mod exit;
mod failure;
mod front;
mod manifest;
mod paths;
mod program;
mod refusal;
mod requested;
mod runtime;
mod service;
mod spending;

pub use program::main;
