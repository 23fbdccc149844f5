//! Several runners with one ledger, each in a separate directory as on another machine, and one simulator that records its charges. After any
//! fault, the two must agree.

use std::collections::BTreeMap;
use std::process::Child;

use crate::cluster::{Cluster, Database};
use crate::support::{Ended, Program, Simulator, Workspace, kill};

/// How many times shorter runners wait for one another here: dead after two seconds.
pub const TIME_SCALE: &str = "30";

/// A team at work.
pub struct Team {
    pub database: Database,
    pub simulator: Simulator,
    pub desks: Vec<Workspace>,
    /// Where the runners find the ledger.
    pub ledger: String,
    /// How many times shorter they wait for one another.
    pub time_scale: &'static str,
    pub here: Workspace,
}

/// A manifest of this many jobs.
pub fn jobs(count: usize) -> String {
    let mut manifest = String::from("version: 1\ndefaults: { model: alpha-2 }\njobs:\n");
    for number in 0..count {
        manifest.push_str(&format!("  - {{ id: j{number}, prompt: number {number} }}\n"));
    }
    manifest
}

impl Team {
    /// Runners with a batch each, of this many jobs.
    pub fn of_batches(runners: usize, count: usize) -> Self {
        let team = Self::new(runners, 0);
        team.split(count);
        team
    }

    /// Gives each runner a separate batch.
    pub fn split(&self, count: usize) {
        for (number, desk) in self.desks.iter().enumerate() {
            let jobs = jobs(count).replace("prompt: ", &format!("prompt: at desk {number} the "));
            desk.write("m.yaml", format!("batch: desk-{number}\n{jobs}"));
        }
    }

    /// Several runners with the same manifest of this many jobs.
    pub fn new(runners: usize, count: usize) -> Self {
        Self::on(Cluster::shared().database(), runners, count, &["--speed", "400"])
    }

    pub fn on(database: Database, runners: usize, count: usize, simulator: &[&str]) -> Self {
        let here = Workspace::new();
        let simulator = Simulator::start(&here, simulator);
        let desks = (0..runners).map(|_| Workspace::with_manifest(&jobs(count))).collect();
        let ledger = database.url();
        Self { database, simulator, desks, ledger, time_scale: TIME_SCALE, here }
    }

    /// A command at a desk.
    pub fn command(&self, desk: usize, args: &[&str]) -> Program {
        self.prepared(desk, self.desks[desk].shotlist(args))
    }

    pub fn prepared(&self, desk: usize, program: Program) -> Program {
        let program = program.with_service(self.simulator.url()).env("SHOTLIST_LEDGER", &self.ledger);
        program.env("SHOTLIST_TIME_SCALE", self.time_scale).env("SHOTLIST_MACHINE", &format!("desk-{desk}"))
    }

    /// A run at a desk.
    pub fn run(&self, desk: usize, args: &[&str]) -> Program {
        self.command(desk, &quick(args))
    }

    /// Runs at all desks that start together.
    pub fn all_at_once(&self, args: &[&str]) -> Vec<Child> {
        let barrier = self.here.path("go");
        let script = format!(
            "while [ ! -e '{}' ]; do sleep 0.02; done; exec \"$0\" {}",
            barrier.display(),
            quick(args).join(" ")
        );
        let started = (0..self.desks.len())
            .map(|desk| self.prepared(desk, Program::script(self.desks[desk].root(), &script)).starts())
            .collect();
        std::fs::write(barrier, "").expect("a file");
        started
    }

    /// The prompt and the task of each charge.
    pub fn charges(&self) -> Vec<(String, String)> {
        let books = self.simulator.ledger();
        let text = |charge: &serde_json::Value, name: &str| charge[name].as_str().expect("a text").to_owned();
        let charges = books["charges"].as_array().expect("charges");
        charges.iter().map(|charge| (text(charge, "prompt"), text(charge, "task_id"))).collect()
    }

    /// Compares the charges of the simulator with the ledger: at most one charge for each attempt, nothing lost, nothing bought twice, and
    /// sums that are right. Gives the number of charges, and of jobs in doubt.
    #[track_caller]
    pub fn agree(&self) -> (usize, usize) {
        let charges = self.charges();
        let rows = self.database.sql(
            "SELECT (record::json #>> '{purchase,request,body}')::json ->> 'prompt', state, coalesce(task, ''), coalesce(alias, '') FROM shotlist.attempt ORDER BY id",
        );
        let rows: Vec<Vec<&str>> = rows.lines().map(|line| line.split('|').collect()).collect();
        let mut charged: BTreeMap<String, usize> = BTreeMap::new();
        for (prompt, task) in &charges {
            *charged.entry(prompt.clone()).or_default() += 1;
            let known = rows.iter().filter(|row| row[2] == *task || row[3] == *task).count();
            let is_doubted = rows.iter().any(|row| row[0] == *prompt && matches!(row[1], "in_doubt" | "intended"));
            assert!(
                known == 1 || known == 0 && is_doubted,
                "the task {task} of {prompt} is known {known} times: {rows:?}"
            );
        }
        for (prompt, times) in &charged {
            let bought = rows.iter().filter(|row| row[0] == prompt && !matches!(row[1], "void" | "rejected")).count();
            assert!(*times <= bought, "{prompt} was charged {times} times, and the ledger knows of {bought}");
            assert_eq!(*times, 1, "{prompt} was bought twice");
        }
        let kept =
            "SELECT (SELECT coalesce(sum(micros), 0) FROM shotlist.spent WHERE label = '') = (SELECT coalesce(sum(price_micros), 0)
             FROM shotlist.attempt WHERE charge <> 'none')";
        assert_eq!(self.database.sql(kept), "t", "the sums are those of the attempts");
        let doubts = rows.iter().filter(|row| matches!(row[1], "in_doubt" | "intended")).count();
        (charges.len(), doubts)
    }
}

/// A run that takes no longer than it must.
pub fn quick<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let quick =
        ["run", "m.yaml", "--yes", "--no-download", "--quiet", "--first-poll", "0s", "--poll-interval", "100ms"];
    let many: &[&str] = if args.contains(&"--concurrency") { &[] } else { &["--concurrency", "50"] };
    [&quick[..], &["--poll-floor", "20ms"], many, args].concat()
}

/// Waits for all of them; each must end with one of these codes.
#[track_caller]
pub fn all_end(started: Vec<Child>, codes: &[i32]) {
    for ended in started.into_iter().map(Ended::wait_for) {
        let is_expected = ended.code.is_some_and(|code| codes.contains(&code));
        assert!(is_expected, "{:?}\nstdout:\n{}\nstderr:\n{}", ended.code, ended.stdout, ended.stderr);
    }
}

/// Kills a runner with all of its processes.
pub fn murdered(child: Child) {
    kill(&child, "-KILL");
    drop(Ended::wait_for(child));
}
