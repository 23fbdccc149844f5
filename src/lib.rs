//! shotlist turns a YAML manifest of video jobs into finished videos on an asynchronous video generation service, and
//! never pays twice by itself.
//!
//! # From a program
//!
//! ```no_run
#![doc = include_str!("../examples/library.rs")]
//! ```
//!
//! # The life of a job
//!
//! ```text
//! m.yaml ─▶ manifest ─▶ Job ─▶ catalog (limits, price) ─▶ plan (what is due, why, how much) ─▶ engine ─▶ ledger ─▶ report
//!           source, raw,                                        ▲                                │  ▲
//!           tables, expand                                      └─────────── what is known ──────┘  │
//!                                                                                     service (HTTP) ┘
//! ```
//!
//! Everything left of the engine is pure: same input, same plan, no clock, no network. The plan is a value; `--plan`
//! prints it and the run consumes it, so the dry run can't lie. A [`session`] takes all of that in the one order that keeps money safe.
//!
//! # The words
//!
//! | word | what it means |
//! |---|---|
//! | job | one video that a manifest asks for, known by name, batch and id |
//! | batch | one round of a manifest's jobs: a new batch value makes all of them due again |
//! | take | one of several generations of the same request |
//! | attempt | one submission of a job, as the ledger knows it |
//! | intent | what is written down before a submission leaves |
//! | task | what the service made of a submission; it is polled until it ends |
//! | in doubt | it may have been charged, and nobody knows: a person has to say |
//! | void | certainly nothing was bought |
//! | to hold a batch | to be its only runner, which alone may buy |
//! | slot | a task outstanding at the service, from the intent to the final word |
//! | cadence | when each task is polled next |
//! | to drain, to leave | to submit no more; not to wait for what is outstanding either |
//! | rescue line | a task id that could not be written down, told to a person |
//! | witness | what notices a ledger that went back in time |
//! | catalogue | limits, defaults and prices of the model families, as data |
//! | sandbox | the simulator of the service; what it makes was never bought |
//!
//! # The rooms
//!
//! Arrows run one way; `tests/integration/house/layering.rs` holds the table and fails on any other edge.
//!
//! | room | what it is for |
//! |---|---|
//! | [`domain`] | plain types: job, attempt, money, history |
//! | [`files`] | the doors to the disk: no link followed, whole or not at all |
//! | [`catalog`] | limits, defaults and prices of the model families, as data |
//! | [`manifest`] | from a YAML file to checked and priced jobs, with the place of everything that is wrong |
//! | [`plan`] | what is due, why, and what it costs |
//! | `bill` | the service's bill, held against what the ledger knows |
//! | [`service`] | the service at the edge, and what each of its answers means for the money |
//! | [`ledger`] | what was bought: the truth, and the argument why a crash never pays twice |
//! | [`download`] | fetches one video safely |
//! | [`hooks`] | programs of the user's that a run starts |
//! | [`engine`] | runs a plan: one bounded stream, one shared poller |
//! | [`monitor`] | tells whoever watches from afar how a run went |
//! | [`session`] | the one safe order from a manifest to reports |
//! | [`report`] | views of the ledger: CSV, JSON and a contact sheet |
//! | [`sandbox`] | the simulator of the service |
//! | [`reference`](mod@reference) | what stands in no help text because it is about more than one option |
//! | [`ui`] | what people see |
//! | [`cli`] | the command line, and the only room that knows all others |
//!
//! # How far it goes
//!
//! Measured on two shared cores with `cargo bench --bench numbers` and `sharing`, and a run against `shotlist sandbox`; what was only reckoned says so.
//!
//! | what | so many | what it takes | what comes first beyond it, and what it would take |
//! |---|---|---|---|
//! | jobs in a manifest | 100,000 | a plan in 0.7 s and 190 MB, of the rows of a table in 0.4 s | 200,000 jobs and 64 MiB of text are limits, told before memory is short. 1,000,000 would be 7 s and 1.9 GB (reckoned): all jobs are in memory. It would take a plan that is made piece by piece and keeps only what is due |
//! | tasks outstanding | 100,000 | 100,000 submitted in 11 s, 490 MB, 4.4 polls a task, 0.6 ms of processor time a job with all reports | the service's own limit. In the program, memory: 5 kB a task; then polls, 5 a task, at 0.05 ms each |
//! | attempts in a ledger | 1,000,000 | `status` of a batch in 17 ms, `spend` of a month in 70 ms, 0.9 kB each | `spend` of a long span: it reads what the span holds, 0.8 µs an attempt. With 10,000,000, a month in 0.7 s and a year in 8 s (reckoned): it would take sums by day that are kept with each commit. `status` reads one batch, however long the books are |
//! | runners of one ledger | 8 | 0.82 of the jobs a second that one has on the same two cores | the one lock under which intents are decided: 440 jobs a second and more. Past that, a ledger for each account |
//! | cards of a page | 5,000 | 10 ms of work a frame while somebody scrolls, as with 500: the rows that are near are laid out, and have players | a page of 10,000 is 16 MB; a batch for each part, as `for_each` and `--batch` make them |

mod bill;
pub mod catalog;
pub mod cli;
pub mod domain;
pub mod download;
pub mod engine;
mod files;
pub mod hooks;
pub mod ledger;
pub mod manifest;
pub mod monitor;
pub mod plan;
pub mod reference;
pub mod report;
pub mod sandbox;
pub mod service;
pub mod session;
pub mod ui;
