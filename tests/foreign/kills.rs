//! Kills, locks, and signals on other systems and processors.

use std::collections::BTreeMap;

use crate::desk::{Foreign, foreign, quick};
use crate::support::{Ended, Simulator, Workspace, kill, numbered_jobs, wait_until};

/// Makes a test of each function here for each machine.
macro_rules! on_each_machine {
    ($($test:ident),+) => {
        mod windows {
            $(#[test] fn $test() { super::$test(super::Foreign::Windows); })+
        }
        mod arm64 {
            $(#[test] fn $test() { super::$test(super::Foreign::Arm64); })+
        }
    };
}

on_each_machine!(
    kill_at_each_commit_charges_nothing_twice,
    batch_has_one_run_at_a_time,
    removed_ledger_is_refused,
    interrupt_ends_a_run_and_the_next_one_collects
);

/// The number of charges for each prompt.
fn charges(simulator: &Simulator) -> BTreeMap<String, usize> {
    let mut charged = BTreeMap::new();
    for charge in simulator.ledger()["charges"].as_array().expect("charges") {
        *charged.entry(charge["prompt"].as_str().expect("a prompt").to_owned()).or_default() += 1;
    }
    charged
}

/// A kill at each commit of a run, one run after the other on one ledger: each job is charged once, or is in doubt.
fn kill_at_each_commit_charges_nothing_twice(machine: Foreign) {
    let here = Workspace::with_manifest(&numbered_jobs(6));
    let simulator = Simulator::start(&here, &["--speed", "400"]);
    let run = |args: &[&str]| foreign(machine, &here, &quick(args)).with_service(simulator.url());
    let mut kills = 0;
    for place in ["after-intent", "before-commit", "after-commit"] {
        for number in 1..=3 {
            let ended = run(&["--concurrency", "1"]).dies_at(&format!("{place}:{number}"));
            kills += usize::from(ended.code.is_none());
        }
    }
    assert!(kills >= 6, "{kills} kills");
    let ended = run(&[]).ends();
    assert!(ended.code == Some(0) || ended.code == Some(7), "{:?}: {}", ended.code, ended.stderr);
    let charged = charges(&simulator);
    assert!(charged.values().all(|times| *times == 1), "{charged:?}");
    let states = here.states();
    let count = |wanted: &str| states.iter().filter(|state| *state == wanted).count();
    assert_eq!(count("completed") + count("in_doubt"), 6, "{states:?}");
    assert!(charged.len() >= count("completed") && charged.len() <= 6, "{charged:?} {states:?}");
    assert_eq!(foreign(machine, &here, &["ledger", "check"]).ends().code, Some(0));
}

/// The kernel drops the lock of a killed process, and of no other.
fn batch_has_one_run_at_a_time(machine: Foreign) {
    let here = Workspace::with_manifest(&numbered_jobs(2));
    let simulator = Simulator::start(&here, &["--speed", "400"]);
    let run = |args: &[&str]| foreign(machine, &here, &quick(args)).with_service(simulator.url());
    let flag = here.path("halted");
    let first = run(&["--concurrency", "1"]).env("SHOTLIST_HALT_AT", "after-commit:2");
    let first = first.env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
    wait_until("it stands still", || flag.exists());
    let second = run(&[]).fails_with("batch-locked", 75);
    assert!(second.stderr.contains("is locked by another run"), "{}", second.stderr);
    kill(&first, "-KILL");
    drop(Ended::wait_for(first));
    std::fs::remove_file(&flag).expect("a flag");
    let ended = run(&[]).ends();
    assert!(ended.code == Some(0) || ended.code == Some(7), "{:?}: {}", ended.code, ended.stderr);
    assert!(charges(&simulator).values().all(|times| *times == 1));
}

/// A removed ledger makes nothing due again.
fn removed_ledger_is_refused(machine: Foreign) {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let simulator = Simulator::start(&here, &["--speed", "400"]);
    let run = || foreign(machine, &here, &quick(&[])).with_service(simulator.url());
    run().ends_with(0);
    std::fs::remove_file(here.path(".shotlist/ledger.db")).expect("a ledger");
    let refused = run().fails_with("ledger-unavailable", 74);
    assert!(refused.stderr.contains("is missing, but its"), "{}", refused.stderr);
    assert_eq!(charges(&simulator).len(), 1);
}

/// Ctrl-C drains: nothing more is submitted, and what is at the service stays in the ledger.
fn interrupt_ends_a_run_and_the_next_one_collects(machine: Foreign) {
    let here = Workspace::with_manifest(&numbered_jobs(3));
    let simulator = Simulator::start(&here, &["--speed", "20"]);
    let run = |args: &[&str]| foreign(machine, &here, &quick(args)).with_service(simulator.url());
    let first = run(&["--concurrency", "1"]).starts();
    wait_until("a task is at the service", || !charges(&simulator).is_empty());
    kill(&first, "-INT");
    let ended = Ended::wait_for(first);
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(charges(&simulator).len() < 3);
    run(&[]).ends_with(0);
    assert_eq!(charges(&simulator).len(), 3);
    assert!(charges(&simulator).values().all(|times| *times == 1));
}
