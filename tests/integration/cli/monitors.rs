//! Reports of an unattended run to a monitor, metrics, and a summary; and the wait for another run.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Answer, Ended, LEFT_AFTER, Service, TWO_JOBS, Workspace, json, numbered_jobs, raw, wait_until};

/// The reports to a monitor: the words behind its URL, with the IDs of the runs.
fn told(monitor: &Service) -> Vec<(String, String)> {
    let words = monitor.asked().into_iter().map(|asked| {
        let (path, query) = asked.path.split_once('?').expect("an id of the run");
        assert_eq!(asked.method, "POST");
        (path.trim_start_matches("/ping/secret-uuid").to_owned(), query.to_owned())
    });
    words.collect()
}

fn monitor() -> Service {
    Service::scripted_wholly(|_| raw(200, &[], "OK"))
}

fn address(monitor: &Service) -> String {
    format!("{}/ping/secret-uuid", monitor.url())
}

#[test]
fn a_monitor_hears_the_beginning_and_how_it_ended_and_no_prompt() {
    let failing = || {
        Service::scripted(|asked| match (asked.method.as_str(), asked.body.contains("a dog")) {
            ("POST", true) => json(400, &serde_json::json!({ "error": { "message": "we do not draw: a dog" } })),
            _ => Answer::Well,
        })
    };
    let held = "version: 1\nfaces: { bob: { review: pending } }\njobs: [{ id: a, model: beta-2.0-lite, prompt: Bob, face: bob }]\n";
    for (manifest, service, args, code, word, begins) in [
        (TWO_JOBS, Service::well(), [].as_slice(), 0, "", true),
        (TWO_JOBS, failing(), &[], 1, "/1", true),
        (held, Service::well(), &[], 5, "", true),
        (TWO_JOBS, Service::well(), &["--max-cost", "1"], 3, "/3", false),
        ("jobs: nope", Service::well(), &[], 2, "/2", false),
    ] {
        let (monitor, here) = (monitor(), Workspace::with_manifest(manifest));
        let ended = here.run(&service, args).env("SHOTLIST_PING", &address(&monitor)).ends_with(code);
        let words: Vec<String> = told(&monitor).into_iter().map(|(word, _)| word).collect();
        let expected = if begins { vec!["/start".to_owned(), word.to_owned()] } else { vec![word.to_owned()] };
        assert_eq!(words, expected, "{args:?}");
        let ids: std::collections::BTreeSet<String> = told(&monitor).into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids.len(), 1, "one id for one run: {ids:?}");
        let text = monitor.asked().last().expect("a last word").body.clone();
        assert!(
            text.contains(&format!("exit {code}, ")) && !text.contains("a dog") && !text.contains("a cat"),
            "{text}"
        );
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(!said.contains("secret-uuid"), "{said}");
    }
}

#[test]
fn a_monitor_that_is_not_well_costs_one_warning_and_changes_nothing() {
    let elsewhere = [("location", "https://hc.example/login")];
    let silent = || {
        Service::scripted_wholly(|_| {
            Answer::Stream(Box::new(|stream| {
                let mut nothing = [0];
                // Until the client has had enough.
                std::io::Read::read(stream, &mut nothing).map(drop)
            }))
        })
    };
    let monitors = [
        (Service::scripted_wholly(|_| raw(404, &[], "not found")), "HTTP 404"),
        (Service::scripted_wholly(move |_| raw(302, &elsewhere, "")), "HTTP 302"),
        (Service::scripted_wholly(|_| raw(500, &[], "")), "HTTP 500"),
        (Service::scripted_wholly(|_| Answer::Hangup), "`--ping`"),
        (silent(), "no answer within 5 s"),
    ];
    let warned = |ended: &Ended, told: &str| {
        let warnings: Vec<&str> =
            ended.stderr.lines().filter(|line| line.starts_with("warning[ping-failed]")).collect();
        assert!(warnings.len() == 1 && warnings[0].contains(told), "{told}: {}", ended.stderr);
        assert!(!ended.stderr.contains("secret-uuid"), "{}", ended.stderr);
    };
    for (monitor, told) in monitors {
        let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
        let ended = here.run(&service, &["-q"]).env("SHOTLIST_PING", &address(&monitor)).ends_with(0);
        warned(&ended, told);
        assert_eq!((ended.stdout.as_str(), service.posts().len()), ("", 2));
    }
    // No one there, and the address as an option.
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let ended = here.run(&service, &["--ping", "http://127.0.0.1:9/ping/secret-uuid"]).ends_with(0);
    warned(&ended, "`--ping`");
    let hears = monitor();
    here.run(&service, &["--metrics", "m.yaml"]).env("SHOTLIST_PING", &address(&hears)).fails_with("file-exists", 74);
    assert_eq!(told(&hears).iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>(), ["/74"]);
    for address in ["hc.example/x", "file:///x", "http://hc.example/x?y=1"] {
        let ended = here.run(&service, &["--ping", address]).fails_with("option-invalid", 2);
        assert!(!ended.stderr.contains("hc.example"), "{}", ended.stderr);
    }
}

#[test]
fn metrics_say_how_it_stands_also_of_a_run_that_was_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let value = |name: &str| -> Option<f64> {
        let text = std::fs::read_to_string(here.path("m.prom")).expect("metrics");
        let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'))?;
        line.rsplit_once(' ')?.1.parse().ok()
    };
    let options = ["--metrics", "m.prom"];
    here.script(&service, "umask 077; exec \"$0\" run m.yaml --yes --first-poll 0s --metrics m.prom -q").ends_with(0);
    assert_eq!(here.path("m.prom").metadata().expect("a file").permissions().mode() & 0o777, 0o644);
    assert_eq!(value("shotlist_spent_usd"), Some(11.25));
    assert_eq!(value("shotlist_jobs{name=\"m\",batch=\"\",state=\"completed\"}"), Some(2.0));
    assert_eq!(value("shotlist_last_run_exit_code"), Some(0.0));
    let success = value("shotlist_last_success_timestamp_seconds").expect("a success");
    // Refused, for whatever reason: what is not known has no line, and the last success stands.
    here.run(&service, &[&options[..], &["--retake", "*", "--max-cost", "1"]].concat()).ends_with(3);
    assert_eq!((value("shotlist_last_run_exit_code"), value("shotlist_spent_usd")), (Some(3.0), Some(11.25)));
    here.write("m.yaml", "jobs: nope");
    here.run(&service, &options).ends_with(2);
    assert_eq!((value("shotlist_last_run_exit_code"), value("shotlist_spent_usd")), (Some(2.0), None));
    assert_eq!(value("shotlist_last_success_timestamp_seconds"), Some(success));
    assert!(value("shotlist_last_run_timestamp_seconds").expect("a time") > success);
    // A manifest that can't be read is still about the name that it had.
    here.write("m.yaml", TWO_JOBS.replace("version: 1", "version: 1\nname: campaign"));
    here.run(&service, &[&options[..], &["--buy-again", "*", "--max-cost", "0"]].concat()).ends_with(3);
    here.write("m.yaml", "jobs: nope");
    here.run(&service, &options).ends_with(2);
    assert_eq!(value("shotlist_last_run_exit_code{name=\"campaign\""), Some(2.0));
    // What someone else wrote is never replaced, and nothing is bought before that is seen.
    here.write("m.yaml", TWO_JOBS);
    here.write("notes.prom", "my notes\n");
    for option in ["--metrics", "--summary"] {
        here.run(&service, &["--retake", "*", option, "notes.prom"]).fails_with("file-exists", 74);
    }
    assert_eq!(std::fs::read_to_string(here.path("notes.prom")).expect("notes"), "my notes\n");
    assert_eq!(service.posts().len(), 2);
    // A name under which the run itself makes something, too: the ledger is not there yet when the run begins.
    let fresh = Workspace::with_manifest(TWO_JOBS);
    let ended = fresh
        .run(&service, &["--metrics", ".shotlist/ledger.db", "--summary", "shotlist-out/m/report.csv"])
        .ends_with(0);
    assert_eq!(ended.stderr.matches("warning[monitor-not-written]").count(), 2, "{}", ended.stderr);
    fresh.run(&service, &[]).ends_with(0);
    // A rehearsal is called one, and no monitor takes it for a run.
    let hears = monitor();
    let rehearsal = Workspace::with_manifest(TWO_JOBS);
    let ended = rehearsal
        .shotlist(&[
            "run",
            "m.yaml",
            "--sandbox",
            "--ping",
            &address(&hears),
            "--metrics",
            "m.prom",
            "--summary",
            "s.md",
        ])
        .ends_with(0);
    let text = |name: &str| std::fs::read_to_string(rehearsal.path(name)).expect("a file");
    assert!(
        text("m.prom").contains("batch=\"\",simulated=\"true\"}") && text("s.md").contains("simulator"),
        "{}",
        ended.stderr
    );
    assert_eq!(rehearsal.path("s.md").metadata().expect("a file").permissions().mode() & 0o111, 0);
    assert_eq!(told(&hears).iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>(), ["/log"]);
    assert!(hears.asked()[0].body.contains("This was the simulator"));
    // One that can't be written is reported, and costs nothing else.
    here.run(&service, &["--retake", "one", "--metrics", "/proc/none/m.prom"])
        .ends_with(0)
        .shows("monitor-not-written");
}

#[test]
fn a_summary_begins_with_what_it_is_about_and_shows_what_is_wrong() {
    let refusal = format!("no number 7: {}", "no | such <img> thing ".repeat(40));
    let service = Service::scripted(move |asked| {
        if asked.body.contains("number 7\"") {
            return json(400, &serde_json::json!({ "error": { "message": refusal } }));
        }
        Answer::Well
    });
    let here = Workspace::with_manifest(&numbered_jobs(12));
    here.run(&service, &["--summary", "s.md", "--batch", "a --> b"]).ends_with(1);
    let text = std::fs::read_to_string(here.path("s.md")).expect("a summary");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "<!-- shotlist summary: m / a %2D%2D%3E b -->");
    assert!(
        lines.contains(&"**Exit 1: a job is not finished.**") && lines.contains(&"12 jobs: 11 completed, 1 rejected."),
        "{text}"
    );
    let first = lines.iter().position(|line| line.starts_with("|---|---|---|---:|")).expect("a table") + 1;
    assert!(
        lines[first].starts_with("| rejected | `j7` | alpha-2 | $0.00 |") && !lines[first].contains("<img>"),
        "{text}"
    );
    assert!(!text.contains("number 7"), "a prompt: {text}");
}

#[test]
fn another_run_is_waited_for_as_long_as_was_said_and_a_monitor_hears_that_nothing_began() {
    let well = std::sync::Arc::new(AtomicBool::new(false));
    let switch = std::sync::Arc::clone(&well);
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "GET" if !switch.load(Ordering::SeqCst) => {
            json(200, &serde_json::json!({ "id": "t0", "status": "in_progress" }))
        }
        _ => Answer::Well,
    });
    let (here, monitor) = (Workspace::with_manifest(&numbered_jobs(1)), monitor());
    let first = here.run(&service, &[]).starts();
    wait_until("it has submitted", || !service.posts().is_empty());
    let busy = here.run(&service, &["--lock-wait", LEFT_AFTER, "--log-format", "json"]);
    let busy = busy.env("SHOTLIST_PING", &address(&monitor)).ends_with(75).shows("waiting-for-lock");
    assert!(!busy.stderr.contains("--batch"), "{}", busy.stderr);
    assert_eq!(told(&monitor).iter().map(|(word, _)| word.as_str()).collect::<Vec<_>>(), ["/log"]);
    // One that waits long enough finds everything done, and buys nothing.
    let second = here.run(&service, &["--lock-wait", "5m"]).starts();
    well.store(true, Ordering::SeqCst);
    assert_eq!((Ended::of(first).code, Ended::of(second).code), (Some(0), Some(0)));
    assert_eq!(service.posts().len(), 1);
}
