//! `--approved` buys the approved plan once, also if a run is killed.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Answer, Ended, Service, Workspace, has_code, json as answer, kill, numbered_jobs, wait_until};

fn saved(here: &Workspace, arguments: &[&str]) -> Value {
    let plan =
        here.shotlist(&[&["run", "m.yaml", "--plan", "--format", "json"], arguments].concat()).ends_with(0).stdout;
    here.write("plan.json", &plan);
    serde_json::from_str(&plan).expect("JSON")
}

fn digest(here: &Workspace, arguments: &[&str]) -> String {
    saved(here, arguments)["digest"].as_str().expect("a digest").to_owned()
}

/// A run with the approval as its only confirmation.
fn approved(here: &Workspace, service: &Service, arguments: &[&str]) -> Ended {
    here.shotlist(&[&["run", "m.yaml"], arguments].concat()).with_service(&service.url()).ends()
}

#[test]
fn printed_command_repeats_given_options_and_no_secret() {
    let jobs = "version: 1\njobs: [{ for_each: ../rows.csv, id: \"{{ row.id }}\", model: alpha-2, prompt: x }]\n";
    let here = Workspace::new().file("rows.csv", "id\na\n").file("sub/m.yaml", jobs);
    let given = "--root . --batch b --concurrency 3 --header x-token=hush --same-account --accept-mismatch --accept-warnings --buy-again *";
    let plan = ["run", "sub/m.yaml", "--plan", "--format", "text"];
    let shown = here.shotlist(&[&plan[..], &given.split(' ').collect::<Vec<_>>()].concat()).ends_with(0).stdout;
    let command = shown.lines().find_map(|line| line.strip_prefix("to buy exactly this: shotlist ")).expect(&shown);
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!(
        words[4..].join(" "),
        "--root . --batch b --accept-warnings --concurrency 3",
        "no secret, and no confirmation but of what is shown"
    );
    let service = Service::well();
    here.shotlist(&words).with_service(&service.url()).ends_with(0);
    assert_eq!(service.posts().len(), 1);
}

#[test]
fn approval_confirms_its_plan_and_is_shown_as_a_command() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let digest = digest(&here, &[]);
    let text = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    assert!(
        text.contains(&format!("digest: {digest}\nto buy exactly this: shotlist run m.yaml --approved {digest}\n")),
        "{text}"
    );
    let markdown = here.shotlist(&["run", "m.yaml", "--plan", "--format", "markdown"]).ends_with(0).stdout;
    assert!(
        markdown.contains(&format!("`{digest}`"))
            && markdown.contains(&format!("    shotlist run m.yaml --approved {digest}")),
        "{markdown}"
    );
    // The command has all options about jobs and money.
    let of_one = here
        .shotlist(&["run", "m.yaml", "--plan", "--select", "j1", "--retries", "2", "--out", "dir", "--max-cost", "9"])
        .ends_with(0)
        .lacks(&[&digest])
        .line("to buy exactly this");
    assert!(of_one.ends_with(" --select j1 --max-cost 9 --retries 2 --out dir"), "{of_one}");

    assert_eq!(approved(&here, &service, &[]).code, Some(3), "nothing is confirmed");
    for slip in ["0123", &"0".repeat(65), &digest[..16], &digest[..63], "missing.json", "m.yaml"] {
        assert_eq!(approved(&here, &service, &["--approved", slip]).code, Some(2), "{slip}");
    }
    let part = approved(&here, &service, &["--approved", &digest[..31]]);
    assert!(part.stderr.contains(&digest), "{}", part.stderr);
    // The message about an incomplete digest does not print the digest.
    let part = approved(&here, &service, &["--approved", &"0".repeat(16)]);
    part.lacks(&[&digest]).line("another digest");
    let foreign = "0123456789abcdef".repeat(4);
    let other = approved(&here, &service, &["--approved", &foreign]);
    assert_eq!(other.code, Some(3));
    assert!(other.stderr.contains(&foreign), "{}", other.stderr);
    assert!(service.posts().is_empty());
    let ended = approved(&here, &service, &["--approved", &format!("{} ", digest.to_uppercase())]);
    assert_eq!((ended.code, service.posts().len()), (Some(0), 2), "{}", ended.stderr);
    // A used approval buys nothing, and is no error.
    for approval in [&*digest, "plan.json"] {
        let again = approved(&here, &service, &["--approved", approval]);
        assert_eq!((again.code, service.posts().len()), (Some(0), 2), "{}", again.stderr);
    }
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).lacks(&["digest"]);
}

#[test]
fn plan_unlike_the_approved_one_is_refused() {
    let list = |jobs: &str| format!("version: 1\ndefaults: {{ model: beta-2.0-lite }}\njobs:\n{jobs}");
    let here = Workspace::with_manifest(&list(
        "  - { id: same, prompt: same }\n  - { id: other, prompt: before }\n  - { id: longer, prompt: x }\n  - { id: gone, prompt: y }\n  - { id: done, prompt: z }\n",
    ));
    let service = Service::well();
    saved(&here, &[]);
    here.run(&service, &["--select", "done"]).ends_with(0);
    here.write("m.yaml", list(
        "  - { id: new, prompt: new }\n  - { id: same, prompt: same }\n  - { id: other, prompt: after }\n  - { id: longer, prompt: x, duration: 10 }\n  - { id: done, prompt: z }\n",
    ));
    let refused = approved(&here, &service, &["--approved", "plan.json", "--retries", "1"]);
    assert_eq!((refused.code, service.posts().len()), (Some(3), 1));
    // `--plan` refuses it without a service.
    here.shotlist(&["run", "m.yaml", "--plan", "--approved", "plan.json"]).fails_with("plan-differs", 3);
    // The digest covers prices, the batch, and labels.
    here.write(
        "dear.yaml",
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/src/catalog/catalog.yaml"))
            .expect("the catalog")
            .replace("0.75", "0.80"),
    );
    here.write("m.yaml", list("  - { id: same, prompt: same }\n"));
    saved(&here, &[]);
    let dear = approved(&here, &service, &["--approved", "plan.json", "--catalog", "dear.yaml"]);
    assert!(dear.code == Some(3) && has_code(&dear.stderr, "plan-differs"), "{}", dear.stderr);
    let other = approved(&here, &service, &["--approved", "plan.json", "--batch", "b"]);
    assert!(other.code == Some(3) && has_code(&other.stderr, "plan-differs"), "{}", other.stderr);
    here.write("m.yaml", list("  - { id: same, prompt: same, labels: { client: acme } }\n"));
    let other = approved(&here, &service, &["--approved", "plan.json"]);
    assert!(other.code == Some(3) && has_code(&other.stderr, "plan-differs"), "{}", other.stderr);
    let what_is_no_part = list("  - { id: same, prompt: same, tags: [x], file: s.mp4 } # why not\n");
    here.write("m.yaml", what_is_no_part);
    assert_eq!(approved(&here, &service, &["--approved", "plan.json"]).code, Some(0));
    assert_eq!(service.posts().len(), 2);
}

/// A saved plan confirms its own contents.
#[test]
fn saved_plan_with_a_wrong_digest_is_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let plan = saved(&here, &[]);
    let edits: [fn(&mut Value); 7] = [
        |plan| plan["jobs"][0]["request"]["prompt"] = json!("a cheaper one"),
        |plan| plan["jobs"][0]["cost_usd"] = json!("0.01"),
        |plan| drop(plan["jobs"].as_array_mut().expect("jobs").pop()),
        |plan| plan["totals"]["cost_usd"] = json!("0.90"),
        |plan| plan["simulated"] = json!(true),
        |plan| plan["retries"] = json!(7),
        |plan| plan["digest"] = json!("0".repeat(64)),
    ];
    for edit in edits {
        let mut edited = plan.clone();
        edit(&mut edited);
        here.write("plan.json", edited.to_string());
        let refused = approved(&here, &service, &["--approved", "plan.json"]);
        assert!(refused.code == Some(3) && has_code(&refused.stderr, "plan-differs"), "{edited}: {}", refused.stderr);
        here.shotlist(&["run", "m.yaml", "--plan", "--approved", "plan.json"]).fails_with("plan-differs", 3);
    }
    assert!(service.posts().is_empty());
    here.write("plan.json", plan.to_string());
    assert_eq!(approved(&here, &service, &["--approved", "plan.json"]).code, Some(0));
}

/// `image_key` decides whether a job is due. The digest covers the image itself.
#[test]
fn approved_request_is_sent_unchanged() {
    let list = |image: &str| {
        format!(
            "version: 1\njobs: [{{ id: a, model: alpha-2, prompt: x, image: \"https://x.example/{image}.png\", image_key: k }}]\n"
        )
    };
    let (service, here) = (Service::well(), Workspace::with_manifest(&list("one")));
    saved(&here, &[]);
    here.write("m.yaml", list("other"));
    let refused = approved(&here, &service, &["--approved", "plan.json"]);
    assert!(refused.code == Some(3) && has_code(&refused.stderr, "plan-differs"), "{}", refused.stderr);
    here.write("m.yaml", list("one"));
    assert_eq!(approved(&here, &service, &["--approved", "plan.json"]).code, Some(0));
    assert_eq!(service.posts().len(), 1);
}

/// Requests that are already paid for need `--buy-again`, which the printed command has.
#[test]
fn printed_command_buys_the_plan() {
    let (service, here) = (
        Service::well(),
        Workspace::with_manifest("version: 1\nname: a\njobs: [{ id: x, model: alpha-2, prompt: x }]\n"),
    );
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", "version: 1\nname: b\njobs: [{ id: x, model: alpha-2, prompt: x }]\n");
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    let command = plan
        .lines()
        .find_map(|line| line.strip_prefix("to buy exactly this, and pay again for 1 job: shotlist run m.yaml "))
        .expect("a command");
    assert!(command.ends_with(" --buy-again x"), "{command}");
    let words: Vec<&str> = command.split(' ').collect();
    assert_eq!((approved(&here, &service, &words).code, service.posts().len()), (Some(0), 2));
}

/// An approval buys a retake once, also if its task fails.
#[test]
fn approval_buys_no_job_twice() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(1)));
    here.run(&service, &[]).ends_with(0);
    let digest = digest(&here, &["--retake", "j0"]);
    for _ in 0..2 {
        let ended = approved(&here, &service, &["--retake", "j0", "--approved", &digest]);
        assert_eq!((ended.code, service.posts().len()), (Some(0), 2), "{}", ended.stderr);
    }
    let failing = Service::scripted(|asked| match asked.method.as_str() {
        "GET" => answer(200, &json!({ "status": "failed", "error": { "message": "no" } })),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let digest = digest_of_retries(&here);
    for _ in 0..2 {
        let ended = approved(&here, &failing, &["--retries", "1", "--retry-failed", "--approved", &digest]);
        assert_eq!((ended.code, failing.posts().len()), (Some(1), 2), "{}", ended.stderr);
    }
}

fn digest_of_retries(here: &Workspace) -> String {
    digest(here, &["--retries", "1", "--retry-failed"])
}

/// A kill at each commit: the same approval continues, and counts all purchases.
#[test]
fn killed_run_continues_under_its_approval() {
    for halt in
        ["before-commit:1", "after-commit:1", "after-commit:2", "before-commit:3", "after-commit:4", "after-commit:5"]
    {
        let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(3)));
        saved(&here, &[]);
        let flag = here.path("halted");
        let run = here
            .shotlist(&["run", "m.yaml", "--concurrency", "1", "--approved", "plan.json"])
            .with_service(&service.url());
        let child = run.env("SHOTLIST_HALT_AT", halt).env("SHOTLIST_HALT_FILE", &flag.to_string_lossy()).starts();
        wait_until(halt, || flag.exists());
        kill(&child, "-KILL");
        drop(Ended::wait_for(child));
        let ended = approved(&here, &service, &["--approved", "plan.json"]);
        assert!(matches!(ended.code, Some(0 | 7)), "{halt}: {}", ended.stderr);
        // The user resolves the job in doubt, which is due then.
        if ended.code == Some(7) {
            here.shotlist(&["resolve", "m.yaml", "*", "--never-created"]).ends_with(0);
            let ended = approved(&here, &service, &["--approved", "plan.json"]);
            assert_eq!(ended.code, Some(0), "{halt}: {}", ended.stderr);
        }
        let bought = here.ledger("SELECT job FROM attempt WHERE state = 'completed' ORDER BY job");
        assert_eq!(bought, [["j0"], ["j1"], ["j2"]], "{halt}");
    }
}

/// The steps of the CI example, with a replacement for GitHub's command.
#[test]
#[cfg(unix)]
fn ci_example_buys_the_plan_of_the_pull_request_on_merge() {
    use std::os::unix::fs::PermissionsExt as _;

    let example =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/cron/approval.yml")).expect("the example");
    let example: serde_yaml::Value = serde_yaml::from_str(&example).expect("YAML");
    let step = |job: &str| example["jobs"][job]["steps"][1]["run"].as_str().expect("a script").to_owned();
    let (service, here) = (Service::well(), Workspace::new());
    here.write("videos/campaign.yaml", numbered_jobs(2));
    here.write("bin/gh", "#!/bin/sh\ncase \"$1 $2\" in\n'pr comment') cp plan.md comment ;;\n'pr list') echo 7 ;;\n'pr view') cat comment ;;\nesac\n");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_shotlist"), here.path("bin/shotlist")).expect("a link");
    fs::set_permissions(here.path("bin/gh"), fs::Permissions::from_mode(0o755)).expect("it can be run");
    let path = format!("{}:{}", here.path("bin").display(), std::env::var("PATH").expect("a path"));
    let runs = |job: &str| {
        here.script(&service, &format!("set -e\n{}", step(job)))
            .env("PATH", &path)
            .env("PR", "7")
            .env("SHA", "abc")
            .env("GITHUB_STEP_SUMMARY", &here.path("summary.md").to_string_lossy())
            .ends()
    };
    assert_eq!(runs("run").code, Some(2), "no plan was approved");
    let planned = runs("plan");
    assert_eq!((planned.code, service.posts().len()), (Some(0), 0), "{}", planned.stderr);
    here.write("videos/campaign.yaml", numbered_jobs(3));
    assert_eq!((runs("run").code, service.posts().len()), (Some(3), 0), "it was changed after it was approved");
    here.write("videos/campaign.yaml", numbered_jobs(2));
    for _ in 0..2 {
        let ended = runs("run");
        assert_eq!((ended.code, service.posts().len()), (Some(0), 2), "{}", ended.stderr);
    }
}
