//! The command line: the only module that knows all others, and the only one that turns outcomes into exit codes.
//!
//! [`args`] has the arguments, and [`commands`] the commands. [`manifest`] loads the manifest and the catalog, [`paths`] has the paths of
//! ledger, reports, and videos, and [`service`] the address, the key, and the connection. [`approved`] confirms a plan before money is spent, and
//! [`requested`] has the options of a run and checks its hooks. [`next_commands`] has the printed commands. [`program`] runs a command until its end or a signal, and [`exit`] has its
//! exit code or its failure.

mod approved;
mod args;
mod choices;
mod commands;
mod exit;
mod manifest;
mod next_commands;
mod paths;
mod program;
mod requested;
mod service;

pub use program::main;
