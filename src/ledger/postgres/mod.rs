//! A ledger in a PostgreSQL database, for runners on several machines that share jobs, tasks, limits and places of an account.
//!
//! # What it promises
//!
//! All that the ledger promises holds for all runners together: also when one halts for an hour and wakes up, when
//! connections break at any point, and when the database forgets its last commits. Safety never rests on who is thought to be
//! alive; that decides only how soon the work of one that died goes on elsewhere. There are no sessions to keep, no advisory
//! locks, no queues and no notifications, so that a pooler may hand each transaction to another connection.
//!
//! # The argument
//!
//! | what happens | why nothing is paid twice |
//! |---|---|
//! | two runners want one job | all decide under one lock, one after the other, and two open attempts of a job are refused by an index |
//! | the answer to a commit is lost | the runner's own count of its writes, in the same transaction, says whether it was made; until that is known, nothing is sent |
//! | a runner dies after its intent | its job is open, and no one else takes it; when no answer can come any more it is in doubt, which only the user settles |
//! | a runner halts, is declared dead, and wakes up | its next intent is refused; an intent from before is not sent once its deadline is over, on a clock that counts standstill; an answer that comes late is still its own to write down |
//! | the user says "never created" | refused while the sender may still live |
//! | two runners poll one task | the first result counts, the second is the same |
//! | a standby takes over that lacks the last commits | its timeline is another one: purchases freeze until the user unfreezes them, unless a synchronous standby acknowledged every intent; a runner that misses its writes puts them back and freezes purchases in any case |
//!
//! # Modules
//!
//! [`mod@ledger`] reads, and locks batches. [`store`] runs transactions, and repeats them after a broken connection; [`runner_transaction`] is one of
//! them. [`facts`] reads what admits intents, among it the [`freeze`](mod@freeze) and the [`slots`]. [`statements`] are those of any store, and [`rows`]
//! are attempts. A [`runner`] has a [`lease`], which it renews by [`heartbeats`];
//! [`acknowledged_writes`] are what it puts back after a failover. [`batches`] and [`runners`] are shared with others. [`address`],
//! [`connect`], [`schema`], [`transaction`], and [`error`] are about the database.

mod acknowledged_writes;
mod address;
mod batches;
mod commands;
mod connect;
mod error;
mod facts;
mod freeze;
mod heartbeats;
mod lease;
mod ledger;
mod rows;
mod runner;
mod runner_transaction;
mod runners;
mod schema;
mod slots;
mod statements;
mod store;
mod transaction;

pub use address::{AddressError, PostgresAddress};
pub use ledger::PostgresLedger;
