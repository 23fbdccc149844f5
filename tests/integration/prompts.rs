//! Real input: the 946 prompts of the `VBench` suite, through the simulator as a service of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::support::Workspace;

/// The simulator as a process, ended with the test.
struct Simulator {
    child: Child,
    url: String,
}

impl Simulator {
    fn start(here: &Workspace) -> Self {
        let mut child = here.shotlist(&["sandbox", "--port", "0", "--speed", "5000"]).starts();
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("stdout")).read_line(&mut url).expect("a line");
        Self { child, url: url.trim().to_owned() }
    }

    /// What it charged.
    fn ledger(&self) -> Value {
        let host = self.url.strip_prefix("http://").expect("an address");
        let mut stream = TcpStream::connect(host).expect("a connection");
        write!(stream, "GET /_sandbox/ledger HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        let _already_gone = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[test]
fn all_946_prompts_are_completed_and_charged_once() {
    let here = Workspace::new();
    let simulator = Simulator::start(&here);
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/vbench.yaml");
    let manifest = manifest.to_str().expect("UTF-8");
    let run = |out: &str, wording: &str| {
        let pace = [
            "--yes",
            "-q",
            "--concurrency",
            "64",
            "--first-poll",
            "5ms",
            "--poll-interval",
            "20ms",
            "--poll-floor",
            "5ms",
        ];
        let set = format!("wording={wording}");
        let args = [&["run", manifest, "--ledger", "ledger.db", "--out", out, "--set", &set], pace.as_slice()].concat();
        here.shotlist(&args).env("SHOTLIST_BASE_URL", &simulator.url).env("SHOTLIST_API_KEY", "k").ends_with(0);
        here.json(&format!("{out}/report.json"))
    };

    // The short wording on family B, the long one on family A.
    let short = run("short", "short");
    let charged = simulator.ledger();
    assert_eq!((&charged["count"], &charged["total_usd"]), (&946.into(), &"3074.50".into()));
    compare(&short, &charged);

    let long = run("long", "long");
    assert_eq!(long["totals"]["spent_usd"], "851.40");
    assert_eq!(simulator.ledger()["total_usd"], "3925.90");

    // A second run of either costs nothing.
    assert_eq!(run("short", "short")["totals"], short["totals"]);
    assert_eq!(run("long", "long")["totals"], long["totals"]);
    assert_eq!(simulator.ledger()["count"], 1892);
}

/// The report and the simulator's own ledger agree, task by task and to the cent.
fn compare(report: &Value, charged: &Value) {
    assert_eq!(report["totals"]["states"]["completed"], 946);
    assert_eq!(report["totals"]["spent_usd"], charged["total_usd"]);
    assert_eq!(report["totals"]["at_risk_usd"], "0.00");
    let facts = |list: &Value, task: &str| -> Vec<(String, String, String)> {
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let mut facts: Vec<_> = list
            .as_array()
            .expect("a list")
            .iter()
            .map(|entry| (text(&entry[task]), text(&entry["prompt"]), text(&entry["cost_usd"])))
            .collect();
        facts.sort();
        facts
    };
    assert_eq!(facts(&report["jobs"], "task_id"), facts(&charged["charges"], "task_id"));
}
