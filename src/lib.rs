//! shotlist is a batch runner for a paid, asynchronous video generation service. It submits each attempt at most once.
//!
//! # Use as a library
//!
//! ```no_run
#![doc = include_str!("../examples/library.rs")]
//! ```
//!
//! # The life of a job
//!
//! ```text
//! m.yaml ─▶ manifest ─▶ Job ─▶ catalog (bounds, price) ─▶ plan (what is due, why, cost) ─▶ engine ─▶ ledger ─▶ report
//!           source, raw,                                        ▲                             │  ▲
//!           tables, expand                                      └────── ledger history ───────┘  │
//!                                                                              service (HTTP) ───┘
//! ```
//!
//! Everything left of the engine is pure: the same input gives the same plan, without a clock or a network. The plan is a value. `--plan` prints
//! it, and the run consumes it, so the dry run can't differ from the run. A [`session`] takes these steps in the one order that keeps money safe.
//!
//! # Words
//!
//! `shotlist help words` explains the words of users. The code adds these:
//!
//! | Word | Meaning |
//! |---|---|
//! | intent | write-ahead record of a submission |
//! | void | an intent that certainly bought nothing |
//! | slot | permission for one active task, from the intent to the terminal state |
//! | slow start | in-flight limit that grows with each acceptance |
//! | poll schedule | the times at which a task is polled |
//! | drain, abort | finish in-flight work; exit now |
//! | commit counter | file that reveals an outdated copy of the ledger |
//! | fencing | refusing writes of an expired runner |
//!
//! # Modules
//!
//! Dependencies run one way; `tests/integration/house/layering.rs` has the table and fails on any other edge.
//!
//! | Module | Responsibility |
//! |---|---|
//! | [`domain`] | plain types: job, attempt, money, history |
//! | [`files`] | safe file access: no link followed, whole files or none |
//! | [`catalog`] | bounds, defaults, and prices of the model families, as data |
//! | [`manifest`] | from a YAML file to checked and priced jobs, with the location of each error |
//! | [`plan`] | what is due, why, and what it costs |
//! | [`bill`] | comparison of the service's bill with the ledger |
//! | [`service`] | the HTTP client, and what each response means for the money |
//! | [`ledger`] | the durable record of attempts, and the argument why a crash never pays twice |
//! | [`download`] | downloads and verifies one video |
//! | [`hooks`] | programs of the user that a run starts |
//! | [`engine`] | runs a plan: one bounded stream, one poller |
//! | [`session`] | the one safe order from a manifest to reports |
//! | [`report`] | views of the ledger: CSV, JSON, XLSX, and the contact sheet |
//! | [`sandbox`] | the simulator of the service |
//! | [`reference`](mod@reference) | topics about more than one option |
//! | [`ui`] | everything that is printed |
//! | [`cli`] | the command line, and the only module that knows all others |
//!
//! # Limits
//!
//! Measured on two shared cores with `cargo bench --bench numbers` and `sharing`, and a run against `shotlist sandbox`. Estimates are marked.
//!
//! | What | Up to | Cost | Beyond |
//! |---|---|---|---|
//! | jobs in a manifest | 100,000 | a plan in 1.4 s and 215 MB | 200,000 jobs and 64 MiB are bounds. All jobs are in memory: 1,000,000 would take 14 s and 2 GB (estimate) |
//! | active tasks | 100,000 | 11 s to submit, 490 MB, 4.4 polls per task, 0.6 ms of CPU per job | the service's own limit; then 5 kB and 0.05 ms per poll of each task |
//! | attempts in a ledger | 1,000,000 | `status` of a batch in 20 ms, `spend` of a month in 70 ms, 1.5 kB each | `spend` of a long span, 0.8 µs per attempt |
//! | runners of one ledger | 8 | 0.82 of the jobs per second of one runner on the same cores | the lock for intents: 440 jobs per second; then one ledger per account |
//! | cards of a contact sheet | 5,000 | 5 ms of work per frame while scrolling | a page of 10,000 has 16 MB; split the batch |

pub mod bill;
pub mod catalog;
pub mod cli;
pub mod domain;
pub mod download;
pub mod engine;
mod files;
mod hooks;
pub mod ledger;
pub mod manifest;
pub mod plan;
mod reference;
pub mod report;
mod sandbox;
pub mod service;
pub mod session;
pub mod ui;
