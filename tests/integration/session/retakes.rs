//! Retakes: a pattern buys one in each run, and a choice buys one for each video.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::support::{
    Answer, Ended, Service, Workspace, codes, has_code, json as answer, kill, numbered_jobs, priced, wait_until,
};

/// Writes choices with *Retake* for these jobs of a report.
fn choose(here: &Workspace, report: &Value, again: &[&str]) {
    let jobs = report["jobs"].as_array().expect("jobs");
    let tasks: HashMap<&str, &Value> =
        jobs.iter().map(|job| (job["id"].as_str().expect("an id"), &job["task_id"])).collect();
    let choices = json!({ "name": "m", "batch": "", "keep": [], "retake": again, "tasks": tasks, "notes": {} });
    here.write("choices.json", choices.to_string());
}

#[test]
fn choice_is_bought_once_for_each_video() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(3)));
    here.run(&service, &[]).ends_with(0);
    choose(&here, &here.report(), &["j0", "j2"]);
    let chosen = ["--retake", "@choices.json"];
    let plan = here.plan(&chosen);
    assert_eq!((priced(&plan).0, codes(&plan).contains(&"choice-spent")), (2, false), "{plan}");
    here.run(&service, &chosen).ends_with(0);
    assert_eq!(service.posts().len(), 5);

    for _ in 0..2 {
        here.run(&service, &[&chosen[..], &["--log-format", "json"]].concat()).ends_with(0).shows("choice-spent");
        assert_eq!(service.posts().len(), 5, "the same choices buy nothing more");
    }
    assert!(codes(&here.plan(&chosen)).contains(&"choice-spent"));

    // A choice about the new video buys another take.
    choose(&here, &here.report(), &["j0"]);
    here.run(&service, &chosen).ends_with(0);
    assert_eq!(service.posts().len(), 6);
    // A pattern buys in each run. The plan has the number of earlier takes.
    for (glob, is_first) in [("j0", false), ("j1", true)] {
        let plan = here.plan(&["--retake", glob]);
        let earlier = plan["jobs"].as_array().expect("jobs").iter().find(|job| job["id"] == glob).expect("the job");
        assert_eq!(earlier["earlier"] == 1, is_first, "{plan}");
    }
    here.run(&service, &[&chosen[..], &["--retake", "j0"]].concat()).ends_with(0);
    assert_eq!(service.posts().len(), 7);
}

#[test]
fn choices_of_a_rehearsal_buy_nothing() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    here.run(&service, &[]).ends_with(0);
    here.shotlist(&["run", "m.yaml", "--sandbox"]).ends_with(0);
    choose(&here, &here.json("shotlist-sandbox/m/report.json"), &["j0"]);
    here.run(&service, &["--retake", "@choices.json"]).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    here.shotlist(&["run", "m.yaml", "--sandbox", "--retake", "@choices.json"]).ends_with(0);
    assert_eq!(here.json("shotlist-sandbox/m/report.json")["superseded"].as_array().map(Vec::len), Some(1));
}

#[test]
fn choices_of_an_unselected_job_are_refused() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    here.run(&service, &[]).ends_with(0);
    choose(&here, &here.report(), &["j0"]);
    let refused = here.run(&service, &["--retake", "@choices.json", "--select", "j1"]).ends_with(2).stderr;
    assert!(has_code(&refused, "no-match"), "{refused}");
    // A file needs the `@`.
    for option in ["--retake", "--select"] {
        let refused = here.run(&service, &[option, "choices.json"]).fails_with("no-match", 2).stderr;
        assert!(refused.contains(&format!("`{option} @choices.json`")), "{refused}");
    }
    assert_eq!(service.posts().len(), 2);
}

#[test]
fn killed_among_its_retakes_it_takes_none_of_them_twice() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(8)));
    here.run(&service, &[]).ends_with(0);
    let ids: Vec<String> = (0..8).map(|job| format!("j{job}")).collect();
    choose(&here, &here.report(), &ids.iter().map(String::as_str).collect::<Vec<_>>());
    let mut killed = 0;
    for _ in 0..4 {
        let before = service.posts().len();
        let mut child = here.run(&service, &["-q", "--retake", "@choices.json", "--concurrency", "1"]).starts();
        wait_until("something is sent, or the run ends", || {
            service.posts().len() > before || child.try_wait().expect("a status").is_some()
        });
        if child.try_wait().expect("a status").is_none() {
            kill(&child, "-KILL");
        }
        killed += usize::from(Ended::wait_for(child).code.is_none());
    }
    assert!(killed > 0, "no kill happened");
    here.run(&service, &["-q", "--retake", "@choices.json"]).ends();
    let mut sent: HashMap<String, usize> = HashMap::new();
    for body in service.posts() {
        let body: Value = serde_json::from_str(&body).expect("JSON");
        *sent.entry(body["prompt"].as_str().expect("a prompt").to_owned()).or_default() += 1;
    }
    assert!(sent.values().all(|&times| times <= 2), "one of them was sent three times: {sent:?}");
    for row in here.report()["jobs"].as_array().expect("jobs") {
        let times = sent[row["prompt"].as_str().expect("a prompt")];
        assert!(row["state"] == "in_doubt" || times == 2, "{times} times: {row}");
    }
}

/// The same command continues the retake.
#[test]
fn printed_command_buys_the_rest_of_an_early_end() {
    for (retake, told) in [("*", "--retake '*'"), ("@choices.json", "--retake @choices.json")] {
        let (taken, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(usize::MAX)));
        let limit = Arc::clone(&most);
        let service = Service::scripted(move |asked| {
            let is_over =
                asked.method == "POST" && taken.fetch_add(1, Ordering::SeqCst) >= limit.load(Ordering::SeqCst);
            if is_over { answer(402, &json!({ "detail": "no credit" })) } else { Answer::Well }
        });
        let here = Workspace::with_manifest(&numbered_jobs(5));
        here.run(&service, &[]).ends_with(0);
        choose(&here, &here.report(), &["j0", "j1", "j2", "j3", "j4"]);
        most.store(7, Ordering::SeqCst);
        let ended = here.run(&service, &["--retake", retake, "--concurrency", "1", "--max-cost", "9"]).ends_with(1);
        let text = ended.stderr.split("warning[not-bought-again]: ").nth(1).and_then(|rest| rest.split("\n\n").next());
        let text = text.unwrap_or_else(|| panic!("no command: {}", ended.stderr));
        if retake == "*" {
            insta::assert_snapshot!(text, @"the run ended early: 3 of 5 jobs to repeat were not submitted; `shotlist run m.yaml --retake '*' --concurrency 1` buys them, and none twice");
        }
        let command = text.split('`').nth(1).expect("a command");
        assert!(command.contains(told), "{command}");
        let posts = service.posts().len();
        here.run(&service, &[]).ends_with(0);
        assert_eq!(service.posts().len(), posts, "a run without it buys none of them");

        most.store(usize::MAX, Ordering::SeqCst);
        here.script(&service, &format!("{} --yes", command.replacen("shotlist", "\"$0\"", 1))).ends_with(0);
        let bought = here.ledger("SELECT count(*) FROM attempt WHERE state = 'completed' GROUP BY job");
        assert_eq!(bought, vec![["2"]; 5], "{command}");
    }
}
