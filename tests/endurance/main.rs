//! Long runs of the real program: kills at every write and at random, chaos, random models of people, damaged ledgers, faults of the simulator,
//! dialects of the service, a thousand prompts, and inputs that claim more memory than a machine has. Takes minutes, so `cargo test` leaves it out:
//! `cargo test --test endurance`.
#![expect(unreachable_pub, reason = "nothing of a test is reachable, and `pub` says what other files of it use")]

#[expect(dead_code, unused_imports, reason = "the other tests use the rest")]
#[path = "../integration/support/mod.rs"]
mod support;

mod bounds;
mod chaos;
mod choices;
mod damage;
mod dialect;
mod dialects_of_polls;
mod dialects_of_submissions;
mod import;
mod kills;
mod links;
mod people;
mod prompts;
mod random;
mod sandbox_faults;
mod spring;
mod workbooks;
