//! What a user sees: stdout, stderr, exit codes and files, of the real program against a real server on loopback.
//! The engine is tested on Tokio's paused clock, with a service and a ledger of its own.

mod bounds;
mod cadence;
mod crash;
mod diagnostics;
mod dialects;
mod documents;
mod downloads;
mod engine;
mod faults;
mod gateways;
mod kills;
mod layering;
mod ledger_faults;
mod ledger_file;
mod manifest;
mod money;
mod names;
mod output;
mod outside;
mod plan;
mod progress;
mod prompts;
mod rates;
mod repurchases;
mod run;
mod sandbox;
mod schema;
mod service_faults;
mod signals;
mod streams;
mod support;
mod terminal;
mod trust;
