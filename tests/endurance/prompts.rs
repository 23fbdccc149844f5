//! Real input: the 946 prompts of the `VBench` suite, with the simulator as a separate service.

use std::path::Path;

use serde_json::Value;

use crate::support::{Simulator, Workspace};

#[test]
fn all_946_prompts_are_completed_and_charged_once() {
    let here = Workspace::new();
    let simulator = Simulator::start(&here, &["--speed", "5000"]);
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
        let args = [
            &["run", manifest, "--accept-warnings", "--ledger", "ledger.db", "--out", out, "--set", &set],
            pace.as_slice(),
        ]
        .concat();
        here.shotlist(&args).with_service(simulator.url()).ends_with(0);
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
