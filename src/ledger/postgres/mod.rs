//! A ledger in a PostgreSQL database, for runners on several machines that share the purchases, limits, and slots of an account.
//!
//! # Guarantees
//!
//! - One runner has a batch at a time, by a lease in the batch's row. Any number of batches run at once.
//! - All guarantees of the ledger hold for all runners together: also if one stalls for an hour, connections break at any point, or the
//!   database loses its last commits.
//! - Safety never depends on liveness: a lease decides only how soon another runner continues a batch. There are no sessions, advisory locks,
//!   or notifications, so a pooler may hand each transaction to another connection.
//!
//! # The argument
//!
//! | event | why nothing is paid twice |
//! |---|---|
//! | two runners want one batch | the row names one of them; each intent checks that; an index refuses two open attempts of a job |
//! | the response to a commit is lost | the runner counts its writes in each transaction, so it sees whether the commit was made; until then, nothing is sent |
//! | a runner dies after its intent | the attempt stays open; once no response can come, it is in doubt, which only the user resolves |
//! | a runner stalls, expires, and wakes up | its intents are refused; an earlier intent is not sent after its deadline, by a clock that counts sleep; it records responses to its own submissions, and nothing else |
//! | the user declares "never created" | refused while the sender may still wait for the response |
//! | a standby takes over, or a dump is restored | the identity in the ledger's row differs: purchases freeze until the user unfreezes them; a runner that misses its writes restores them |
//! | a trigger or rule swallows a row | the structure is compared at each connection, and each write counts its rows: the transaction fails, and nothing is sent |
//!
//! # Modules
//!
//! [`database`] reads, and locks batches. [`store`] runs transactions, and repeats them after a broken connection. Each is a transaction of a [`runner`], which renews its lease, locks its
//! batches, and restores its writes after a failover. [`facts`] reads what admits intents. [`statements`] are those of any store.
//! [`mod@transaction`], [`address`], and [`schema`] are about the database.

mod address;
mod database;
mod facts;
mod runner;
mod schema;
mod statements;
mod store;
mod transaction;

pub use address::PostgresAddress;
pub use database::PostgresLedger;
