//! What a user sees: stdout, stderr, exit codes and files, of the real program against a real server on loopback. The engine is
//! tested on Tokio's paused clock, with a service and a ledger of its own. Each directory is named as the room that it is about.
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

/// Habits, words and exit codes of the command line, and documents that say what it does.
mod cli;
/// Videos on this machine: whole or not there, fetched once, and never at the price of a key, a file or another generation.
mod download;
/// Runs on a paused clock: hours pass in milliseconds, and every moment is exact.
mod engine;
/// How the program is built: held against a table.
mod house;
/// The ledger as a file, with faults of the disk and crashes.
mod ledger;
/// From a file to jobs: what it becomes, and everything that can be wrong with it.
mod manifest;
/// What is due, why, and what it costs; and what was bought before.
mod plan;
/// The simulator, as the interface has the service.
mod sandbox;
/// The service on bad days, under wrong addresses, behind gateways and TLS.
mod service;
/// Whole runs: what is sent and written, limits and confirmations, signals, and the same from a program.
mod session;
/// What the tests share: the program, a workspace, and services that do as they are reported.
mod support;
/// What people see on a terminal, and what text from outside can not do there.
mod ui;
