//! The program from outside: stdout, stderr, exit codes, and files, with a real server on loopback. Tests of the engine use Tokio's paused
//! clock, with a scripted service and a separate ledger. Each directory has the name of its module.
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

/// Habits, words, and exit codes of the command line, and its documents.
mod cli;
/// Videos on this machine: whole or not there, fetched once, and never at the price of a key, a file or another generation.
mod download;
/// Runs on a paused clock: hours pass in milliseconds, and every moment is exact.
mod engine;
/// The structure of the source, compared with tables.
mod house;
/// The ledger as a file, with faults of the disk and crashes.
mod ledger;
/// From a file to jobs, with every error in it.
mod manifest;
/// Due jobs with reason and cost, and earlier purchases.
mod plan;
/// The simulator, as the interface has the service.
mod sandbox;
/// A service with failures, at wrong URLs, behind gateways, and with TLS.
mod service;
/// Whole runs: submissions, files, limits, confirmations, and signals, also through the library.
mod session;
/// Shared parts: the program, a workspace, and scripted services.
mod support;
/// Output on a terminal, and outside text that must not control it.
mod ui;
