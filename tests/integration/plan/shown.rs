//! `--plan`: its output, without any other effect.

use serde_json::Value;

use crate::support::{Service, Workspace, codes};

const MANIFEST: &str = "
version: 1
name: spring
budget: { run: 20 }
defaults: { model: beta-2.0-lite, duration: 5 }
jobs:
  - { id: hero, model: alpha-2, prompt: A paper crane }
  - { id: waves, prompt: Waves, duration: 10 }
  - { id: 'mug-{{ row.n }}', for_each: [{ n: 1 }, { n: 2 }], prompt: 'A mug, {{ row.n }} of 2' }
";

#[test]
fn text_of_a_plan_fits_eighty_columns() {
    let here = Workspace::with_manifest(MANIFEST);
    let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    // A digest is shown whole.
    let is_command = |line: &str| line.starts_with("to buy exactly this: ");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 80 || is_command(line)));
    insta::assert_snapshot!(ended.stdout);
    assert_eq!(ended.stderr, "");
}

#[test]
fn markdown_of_a_plan_suits_a_pull_request() {
    let here = Workspace::with_manifest(MANIFEST);
    insta::assert_snapshot!(here.shotlist(&["run", "m.yaml", "--plan", "--format", "markdown"]).ends_with(0).stdout);
}

/// A reviewer of a pull request sees nothing else.
#[test]
fn markdown_of_a_plan_has_its_warnings() {
    let rows = "id,color\nr0,\nr1,\nr2,\nr3,\nr4,\nr5,\nr6,\nr7,red\nr8,red\n";
    let here = Workspace::with_manifest(
        "version: 1
jobs:
  - { id: \"{{ row.id }}\", for_each: rows.csv, model: alpha-2, prompt: \"a {{ row.color }} mug {{ row.id }}\" }
  - { id: one, model: alpha-2, prompt: <b> & *so* on }
  - { id: two, model: alpha-2, prompt: <b> & *so* on }
",
    )
    .file("rows.csv", rows);
    let plan = |args: &[&str]| {
        let usual = ["run", "m.yaml", "--plan", "--format", "markdown"];
        here.shotlist(&[&usual, args].concat()).ends_with(0).stdout
    };
    let shown = plan(&[]);
    insta::assert_snapshot!(shown.split("\nDigest").next().expect("the beginning"));
    // Of a job that is not selected nothing is at stake.
    let few = ["--select", "r8", "--select", "one"];
    let heading = "**Manifest warnings**";
    assert!(!plan(&few).contains(heading));
    assert_eq!(here.shotlist(&[&["run", "m.yaml", "--plan"][..], &few].concat()).ends_with(0).stderr, "");
    assert_eq!(codes(&here.plan(&few)), ["reads"]);
}

#[test]
fn markdown_has_whole_prompts_changes_and_notes() {
    let long = "A paper crane unfolds into a city at dawn and is seen from far above the harbor";
    let manifest = |prompt: &str| {
        format!(
            "version: 1\njobs:\n  - {{ id: a, model: alpha-2, prompt: {prompt} }}\n  - {{ id: b, model: alpha-2, prompt: a | cat }}\n"
        )
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest(long)));
    let plan = |args: &[&str]| {
        let usual = ["run", "m.yaml", "--plan", "--format", "markdown"];
        let shown = here.shotlist(&[&usual, args].concat()).ends_with(0).stdout;
        shown.split("|---|---|---|").nth(1).expect("a table").to_owned()
    };
    assert!(plan(&[]).contains(&format!("- `a` prompt: {long}\n")), "{}", plan(&[]));
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    here.write("m.yaml", manifest("A crane"));
    let choices = serde_json::json!({ "name": "m", "batch": "", "reviewer": "Ben", "retake": ["b"], "tasks": { "b": "t1" }, "notes": { "b": "too <dark>" } });
    here.write("choices.json", choices.to_string());
    here.shotlist(&["choose", "m.yaml", "choices.json"]).ends_with(0);
    insta::assert_snapshot!(plan(&["--retake", "@ledger"]) + &plan(&[]));
}

#[test]
fn json_of_a_plan_suits_scripts() {
    let here = Workspace::with_manifest(MANIFEST);
    insta::assert_snapshot!(here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout);
}

/// A reviewer must not confuse a simulated plan with a real one.
#[test]
fn simulated_plan_is_marked_in_every_form() {
    let here = Workspace::with_manifest(MANIFEST);
    for (form, said) in [("text", "sandbox run: "), ("markdown", "**Sandbox run: "), ("json", "\"simulated\": true")] {
        let plan = |args: &[&str]| {
            let usual = ["run", "m.yaml", "--plan", "--format", form];
            here.shotlist(&[&usual, args].concat()).ends_with(0).stdout
        };
        let rehearsal = plan(&["--sandbox"]);
        assert!(rehearsal.contains(said), "{form}: {rehearsal}");
        assert!(!plan(&[]).contains(said), "{form}");
    }
}

#[test]
fn it_writes_nothing_and_needs_nothing() {
    let here = Workspace::with_manifest(MANIFEST);
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    assert_eq!(here.files(), ["m.yaml"]);
    // Nor does it touch a ledger that is there.
    let service = Service::well();
    here.run(&service, &["--select", "hero"]).ends_with(0);
    let before = (here.files(), std::fs::read(here.path(".shotlist/ledger.db")).expect("the ledger"));
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    assert_eq!(before, (here.files(), std::fs::read(here.path(".shotlist/ledger.db")).expect("the ledger")));
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["jobs"][0]["action"], "done");
    assert_eq!(plan["totals"]["done"], 1);
    assert_eq!(plan["totals"]["cost_usd"], "15.00");
}

#[test]
fn plan_and_run_over_the_limit_exit_with_three() {
    let here = Workspace::with_manifest(&MANIFEST.replace("run: 20", "run: 15.89"));
    let service = Service::well();
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(3);
    assert!(codes(&here.plan(&[])).contains(&"over-limit"));
    here.run(&service, &[]).fails_with("over-limit", 3);
    assert_eq!(service.asked().len(), 0);
    // To the cent, and `--max-cost` takes the manifest's place.
    here.run(&service, &["--max-cost", "15.90"]).ends_with(0);
}

#[test]
fn without_a_terminal_nothing_is_spent_unless_someone_agreed() {
    let here = Workspace::with_manifest(&MANIFEST.replace("budget: { run: 20 }\n", ""));
    let service = Service::well();
    let run = |args: &[&str]| here.shotlist(&[&["run", "m.yaml"], args].concat()).with_service(&service.url());
    run(&[]).fails_with("confirmation-needed", 3);
    assert_eq!(service.asked().len(), 0);
    run(&["--max-cost", "16"]).ends_with(0);

    // A limit in the manifest confirms the cost.
    here.write("m.yaml", MANIFEST.replace("name: spring", "name: spring\nbatch: second"));
    run(&[]).ends_with(0);
}

#[test]
fn options_come_from_the_environment_too() {
    let here = Workspace::with_manifest(MANIFEST);
    let program = here.shotlist(&["run", "m.yaml"]).env("SHOTLIST_PLAN", "1").env("SHOTLIST_FORMAT", "json");
    let plan = program.env("SHOTLIST_SELECT", "hero").env("SHOTLIST_MAX_COST", "0.5").ends_with(3).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["jobs"].as_array().expect("jobs").len(), 1);
    assert_eq!(plan["budget"]["limits"][0]["source"], "--max-cost");
    assert_eq!(plan["budget"]["within"], false);
}

#[test]
fn finished_prompts_are_shown_before_anything_is_paid() {
    let here = Workspace::with_manifest(
        "version: 1\nvars: { brand: Acme }\njobs:\n  - { id: a, model: alpha-2, prompt: \"{{ brand }} mug\" }\n  - { id: b, model: beta-2.0-lite, prompt: \"two\\nlines, and one that is far too long for a terminal of eighty columns to show on a single line\" }\n",
    );
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "-v"]).ends_with(0).stdout;
    insta::assert_snapshot!(plan.split("\ndigest").next().unwrap_or_default(), @"
    m: 2 jobs

       ACTION  JOB  MODEL          SHAPE     LENGTH   COST  WHY
       submit  a    alpha-2        16:9        12 s  $0.90  is new
       submit  b    beta-2.0-lite  1280x720     5 s  $3.75  is new

       MODEL          JOBS  SECONDS   COST
       alpha-2           1       12  $0.90
       beta-2.0-lite     1        5  $3.75

      a
        Acme mug
      b
        two lines, and one that is far too long for a terminal of eighty columns to show on a single line

    2 jobs to submit for $4.65: about 2 min, about 10 requests
    ");
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).lacks(&["Acme mug"]);
}
