//! Kills and lost responses at a simulator that honors idempotency keys: all doubts settle, and nothing is made twice.

use std::collections::HashSet;

use crate::support::{Ended, Program, Simulator, Workspace, numbered_jobs};

const HONORED: &str = "
version: 1
prices_taken_on: 9999-01-01
idempotency: { header: Idempotency-Key, for: 24h }
";

/// A batch at a simulator that honors keys, and loses so many of its responses.
struct Rehearsal {
    here: Workspace,
    simulator: Simulator,
    jobs: usize,
}

impl Rehearsal {
    fn new(jobs: usize, lost: &str, seed: &str) -> Self {
        let here = Workspace::with_manifest(&numbered_jobs(jobs)).file("catalog.yaml", HONORED);
        let args = ["--speed", "2000", "--seed", seed, "--catalog", "catalog.yaml", "--fault", lost];
        let simulator = Simulator::start(&here, &args);
        Self { here, simulator, jobs }
    }

    fn run(&self) -> Program {
        let quick =
            ["run", "m.yaml", "--yes", "--first-poll", "40ms", "--poll-interval", "50ms", "--poll-floor", "5ms"];
        let args = [&quick[..], &["--max-doubts", "1000", "--concurrency", "4", "--catalog", "catalog.yaml"]].concat();
        self.simulator.used_by(self.here.shotlist(&args))
    }

    /// Runs until nothing is in doubt.
    fn settles(&self, what: &str) {
        for _ in 0..20 {
            let ended = self.run().ends();
            if ended.code == Some(0) {
                return;
            }
            assert_eq!(ended.code, Some(7), "{what}: {}", ended.stderr);
        }
        panic!("{what}: the doubts did not settle");
    }

    /// Each job was charged once, for the task that the ledger has.
    fn check(&self, what: &str) {
        let charges = self.simulator.ledger()["charges"].as_array().expect("charges").clone();
        let prompts: HashSet<&str> = charges.iter().filter_map(|charge| charge["prompt"].as_str()).collect();
        assert_eq!((prompts.len(), charges.len()), (self.jobs, self.jobs), "{what}: charged twice, or never");
        let report = self.here.report();
        for job in report["jobs"].as_array().expect("jobs") {
            let charge = charges.iter().find(|charge| charge["prompt"] == job["prompt"]).expect("a charge");
            assert_eq!((&job["state"], &job["task_id"]), (&"completed".into(), &charge["task_id"]), "{what}: {job}");
        }
    }
}

#[test]
fn doubts_of_every_kill_settle() {
    let mut doubts = 0;
    for place in ["after-intent", "before-commit", "after-commit"] {
        for number in 1..100 {
            let what = format!("{place}:{number}");
            let batch = Rehearsal::new(3, "lost-response=0", "1");
            let ended = batch.run().dies_at(&what);
            if ended.code.is_some() {
                break;
            }
            doubts += batch.here.ledger_if_any("SELECT job FROM attempt WHERE state = 'intended'").len();
            batch.settles(&what);
            batch.check(&what);
        }
    }
    assert!(doubts >= 5, "only {doubts} kills left a doubt");
}

#[test]
fn doubts_of_lost_responses_and_kills_settle() {
    let batch = Rehearsal::new(10, "lost-response=0.3", "1");
    let mut doubts = 0;
    for kill in 4..7 {
        drop::<Ended>(batch.run().dies_at(&format!("before-commit:{kill}")));
        let open = "SELECT job FROM attempt WHERE state IN ('intended', 'in_doubt')";
        doubts += batch.here.ledger_if_any(open).len();
    }
    assert!(doubts > 0, "nothing was in doubt");
    batch.settles("lost responses");
    batch.check("lost responses");
}
