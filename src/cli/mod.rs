//! The command line: the only module that knows all others, and the only one that turns outcomes into exit codes.
//!
//! [`args`] has the arguments, and [`commands`] the commands. [`manifest`] loads the manifest and the catalog, [`options`] makes the options of a
//! session with its ledger, reports, and hooks, and [`service`] reads the address and the key, and connects. [`choices`] reads files of choices and
//! IDs, and [`approved`] confirms a plan before money is spent. [`next_commands`] has the printed commands. [`program`] runs a command until its end
//! or a signal, and [`exit`] has its exit code or its failure.

mod approved;
mod args;
mod choices;
mod commands;
mod exit;
mod manifest;
mod next_commands;
mod options;
mod program;
mod service;

pub use program::main;
