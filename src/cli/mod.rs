//! The command line: the only module that knows all others, and the only one that turns outcomes into exit codes.
//!
//! [`args`] is what can be said, and [`commands`] has a file for each command. [`manifest`] loads what a command is about, [`paths`] and
//! [`destinations`] say where things are, [`connect`] and [`service`] find the service. [`confirm`] asks before money is spent, [`hooks`]
//! what a run starts. [`ending`], [`exit`], [`failure`] and [`refusal`] are about how a command ended; [`signals`] ends a run early.

mod approved;
mod args;
mod catalog;
mod choices;
mod commands;
mod confirm;
mod connect;
mod destinations;
mod ending;
mod environment;
mod exit;
mod failure;
mod front;
mod hooks;
mod manifest;
mod paths;
mod program;
mod refusal;
mod requested;
mod runtime;
mod selection;
mod service;
mod signals;
mod spending;
mod tips;

pub use program::main;
