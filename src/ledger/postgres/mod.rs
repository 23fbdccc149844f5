//! A ledger in a PostgreSQL database, for runners on several machines that share jobs, tasks, limits and places of an account.
//!
//! # What it promises
//!
//! All that the ledger promises holds for all runners together: also when one stands still for an hour and wakes up, when
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
//! | a runner dies after its intent | its job is open, and nobody else takes it; when no answer can come any more it is in doubt, which only a person settles |
//! | a runner stands still, is declared dead, and wakes up | its next intent is refused; an intent from before is not sent once its deadline is over, on a clock that counts standstill; an answer that comes late is still its own to write down |
//! | a person says "never created" | refused while the sender may still live |
//! | two runners look after one task | the first final word counts, the second is the same |
//! | a standby takes over that lacks the last commits | its timeline is another one: purchases freeze until a person unfreezes them, unless a synchronous standby acknowledged every intent; a runner that misses its writes puts them back and freezes purchases in any case |
//!
//! # The rooms inside
//!
//! [`door`] is the way in. [`address`], [`connect`], [`kind`], [`schema`], [`transaction`] and [`error`] are about the database. [`writer`] is the one task
//! that writes; [`held`] batches give it [`orders`], which it does as [`obey`] says, and it remembers in [`memory`]. [`runner`] says who lives, by the [`heartbeats`] that it has seen, and of what [`standing`] it is; it keeps a [`lease`], and [`runners`] tells
//! others of it, [`batches`] who is at what. [`intend`] decides what is sent: through the [`gate`], if there is [`room`] and no limit on [`spending`] is passed. [`record`] writes what
//! became of it, as [`life`] has it. [`rows`] are attempts as rows, [`accounts`], [`jobs`], [`limits`], [`books`] and [`read`] the rest, and [`transfer`] all
//! of it at once.

mod accounts;
mod address;
mod batches;
mod books;
mod connect;
mod door;
mod error;
mod gate;
mod heartbeats;
mod held;
mod intend;
mod jobs;
mod kind;
mod lease;
mod life;
mod limits;
mod memory;
mod obey;
mod orders;
mod read;
mod record;
mod room;
mod rows;
mod runner;
mod runners;
mod schema;
mod spending;
mod standing;
mod transaction;
mod transfer;
mod writer;

pub use address::{AddressError, PostgresAddress};
pub use door::PostgresLedger;
pub use held::PostgresBatch;
