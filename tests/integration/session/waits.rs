//! Jobs that wait for an image: a chain of shots, each beginning with the last frame of the one before.
#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;

use crate::support::{Program, Service, Workspace, codes, kill, output_of, wait_until};

const LINKS: usize = 4;

/// A chain of shots. Each video makes the frame that the next one waits for.
fn chain() -> Workspace {
    let link = |number: usize| match number {
        1 => "  - { id: l1, prompt: x }\n".to_owned(),
        _ => format!(
            "  - {{ id: l{number}, prompt: x, image_file: {{ path: frames/l{}.png, wait: true }} }}\n",
            number - 1
        ),
    };
    let links: String = (1..=LINKS).map(link).collect();
    let here = Workspace::with_manifest(&format!("version: 1\ndefaults: {{ model: alpha-2 }}\njobs:\n{links}"))
        .file("frames/.keep", "")
        .file("frame", "#!/bin/sh\nprintf '\\211PNG\\r\\n\\032\\n%s' \"$SHOTLIST_TASK\" > frames/part && mv frames/part \"frames/$SHOTLIST_ID.png\"\n")
        .file("upload", "#!/bin/sh\necho \"https://cdn.example/$(basename \"$1\")\"\n");
    for program in ["frame", "upload"] {
        std::fs::set_permissions(here.path(program), std::fs::Permissions::from_mode(0o755)).expect("a program");
    }
    here
}

fn run(here: &Workspace, service: &Service, args: &[&str]) -> Program {
    here.run(service, &[&["--exec", "./frame", "--asset-command", "./upload"], args].concat())
}

fn actions(here: &Workspace, args: &[&str]) -> Vec<String> {
    let plan = here.plan(args);
    let jobs = plan["jobs"].as_array().expect("jobs").iter();
    jobs.map(|job| job["action"].as_str().expect("an action").to_owned()).collect()
}

#[test]
fn killed_chain_buys_each_link_once() {
    let (here, service) = (chain(), Service::well());
    assert_eq!(actions(&here, &[])[..3], ["submit", "hold", "hold"]);
    for link in 1..=LINKS {
        // The run after an earlier kill may have found the next frame already.
        if service.posts().len() < link {
            let child = run(&here, &service, &[]).starts();
            // At odd links before the video is there, at even ones while its hook may run.
            let wanted = if link % 2 == 0 { "file IS NOT NULL" } else { "task IS NOT NULL" };
            let bought = format!("SELECT job FROM attempt WHERE {wanted}");
            wait_until("the link is bought", || here.ledger_if_any(&bought).len() >= link);
            kill(&child, "-KILL");
            output_of(child);
        }
        let code = run(&here, &service, &[]).ends().code;
        assert!(matches!(code, Some(0 | 5)), "{code:?}");
    }
    assert_eq!(service.posts().len(), LINKS);
    assert!(actions(&here, &[]).iter().all(|action| action == "done"));

    // A retake of the first link makes one task, and the second one stale.
    run(&here, &service, &["--retake", "l1"]).ends_with(0);
    assert_eq!(service.posts().len(), LINKS + 1);
    assert_eq!(actions(&here, &[])[..3], ["done", "stale", "done"]);
    assert!(codes(&here.plan(&[])).contains(&"stale"));
    let summary = run(&here, &service, &[]).ends_with(0).stdout;
    assert_eq!(service.posts().len(), LINKS + 1, "a stale job is not due");
    let status = here.shotlist(&["status", "m.yaml"]).ends_with(0).stdout;
    let stale = "1 job stale (l2): its image changed since the purchase\n  another take costs $0.90; ";
    assert!(status.starts_with(stale) && summary.contains(stale), "{summary}{status}");
    assert_eq!(here.report()["jobs"][1]["state"], "completed");
    let kept = here.shotlist(&["choose", "m.yaml", "--decide", "l2=keep", "--by", "anna"]).ends_with(0).stdout;
    here.shotlist(&["report", "m.yaml"]).ends_with(0);
    assert_eq!(here.report()["jobs"][1]["reviewer"], "anna", "a stale job has its takes and choices: {kept}");
    assert_eq!(actions(&here, &["--retake", "l2"])[1], "retake");
    run(&here, &service, &["--retake", "l2"]).ends_with(0);
    assert_eq!(actions(&here, &[])[..4], ["done", "done", "stale", "done"]);
}

#[test]
fn job_without_its_image_is_held_and_priced() {
    let (here, service) = (chain(), Service::well());
    here.write(
        "m.yaml",
        "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: x, image_file: { path: later.png, wait: true } }\n",
    );
    let held = run(&here, &service, &[]).ends_with(5);
    for said in ["waits for the image `later.png`", "$0.90 held"] {
        assert!(held.stdout.contains(said), "{}", held.stdout);
    }
    assert_eq!((service.posts().len(), &here.report()["jobs"][0]["state"]), (0, &"held".into()));
    run(&here, &service, &["--buy-again", "*", "--retake", "*"]).ends_with(5);
    assert_eq!(service.posts().len(), 0);
    // Once it is bought, the image may go.
    here.write("later.png", b"\x89PNG\r\n\x1a\nx");
    run(&here, &service, &[]).ends_with(0);
    std::fs::remove_file(here.path("later.png")).expect("removed");
    assert_eq!(actions(&here, &[]), ["done"]);
    assert_eq!(actions(&here, &["--retake", "a"]), ["hold"]);
    // Another prompt is a change like any other, and waits, too.
    let other = std::fs::read_to_string(here.path("m.yaml")).expect("a manifest").replace("prompt: x", "prompt: y");
    here.write("m.yaml", other);
    assert_eq!(actions(&here, &[]), ["hold"]);
    here.write("later.png", b"\x89PNG\r\n\x1a\nx");
    assert_eq!(actions(&here, &[]), ["changed"]);
    for wrong in ["{ path: later.png, wait: maybe }", "{ wait: true }", "{ path: later.png, until: now }"] {
        here.write(
            "m.yaml",
            format!("version: 1\njobs:\n  - {{ id: a, model: alpha-2, prompt: x, image_file: {wrong} }}\n"),
        );
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    }
}

#[test]
fn retake_without_its_image_is_told_also_when_quiet() {
    let (here, service) = (chain(), Service::well());
    run(&here, &service, &["--select", "l1"]).ends_with(0);
    run(&here, &service, &["--select", "l2"]).ends_with(0);
    std::fs::remove_file(here.path("frames/l1.png")).expect("a frame");
    let ended = run(&here, &service, &["--select", "l2", "--retake", "l2", "-q"]).ends_with(5);
    let warning = "warning[not-bought-again]: l2 waits for the image `frames/l1.png`, so it is not bought again\n";
    assert_eq!((&*ended.stderr, service.posts().len()), (warning, 2));
}
