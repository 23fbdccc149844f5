//! Streams and files that are not as one would wish.

use std::fs;

use serde_json::Value;

use crate::support::{Service, TWO_JOBS, Workspace, json};

#[test]
fn closed_pipe_ends_no_run() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    for args in [["run", "m.yaml", "--plan"].as_slice(), &["status", "m.yaml"], &["--help"], &["schema", "plan"]] {
        let mut child = here.shotlist(args).starts();
        drop(child.stdout.take());
        let ended = crate::support::Ended::wait_for(child);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
    }
    let mut child = here.run(&service, &[]).starts();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(crate::support::Ended::wait_for(child).code, Some(0));
    assert_eq!(here.states(), ["completed", "completed"]);
}

#[test]
fn unwritable_report_is_reported_before_a_purchase() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS).file("file", ""));
    for args in [["--report", "file/report.csv"], ["--out", "file"]] {
        here.run(&service, &args).fails_with("not-writable", 74);
    }
    here.run(&service, &["--report", "report.pdf"]).fails_with("option-invalid", 2);
    assert_eq!(service.asked().len(), 0);
}

/// The root user may write everywhere but where the kernel itself refuses.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_ledger_is_reported_before_a_purchase() {
    let (service, here) =
        (Service::well(), Workspace::with_manifest(TWO_JOBS).file("text.db", "this is no database, really"));
    for ledger in ["/proc/shotlist/ledger.db", "text.db"] {
        here.run(&service, &["--ledger", ledger]).fails_with("ledger-unavailable", 74);
    }
    assert_eq!(service.asked().len(), 0);
}

#[test]
fn quiet_is_silent_on_success_and_no_stream_gets_color() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let ended = here.run(&service, &["-q"]).ends_with(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
    here.run(&service, &["--batch", "b", "-v"]).ends_with(0).lacks(&["\u{1b}"]);
    let ended = here.shotlist(&["run", "missing.yaml", "--color", "always"]).ends_with(2);
    assert!(ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
}

#[test]
fn log_can_be_json() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let ended = here.run(&service, &["--log-format", "json"]).ends_with(0);
    let events: Vec<Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).count();
    assert_eq!((named("started"), named("submitted"), named("completed")), (1, 2, 2), "{}", ended.stderr);
    assert_eq!(named("request"), 0, "requests are told with -v");
    for event in &events {
        assert!(event["ts"].as_str().is_some_and(|ts| ts.parse::<jiff::Timestamp>().is_ok()), "{event}");
        assert!(event["level"].is_string() && event["event"].is_string(), "{event}");
    }
    let submitted = events.iter().find(|event| event["event"] == "submitted").expect("one");
    assert!(
        submitted["job"].is_string() && submitted["task"].is_string() && submitted["usd"].is_string(),
        "{submitted}"
    );
    // The last word is how it ended, in sums and as a code.
    let last = events.last().expect("a last one");
    assert_eq!(
        (&last["event"], &last["exit_code"], &last["spent_usd"]),
        (&"finished".into(), &0.into(), &"11.25".into())
    );
    assert_eq!((&last["jobs"], &last["completed"], &last["name"]), (&2.into(), &2.into(), &"m".into()));
}

#[test]
fn json_log_is_always_json_and_has_the_ending() {
    let here = Workspace::with_manifest(TWO_JOBS)
        .file("bad.yaml", "version: 1\njobs: [{ id: a, model: nope, prompt: The secret prompt }]\n");
    let service = Service::well();
    for (args, code, told) in [
        (["run", "bad.yaml", "--yes"].as_slice(), 2, "diagnostic"),
        (&["run", "missing.yaml", "--yes"], 2, "error"),
        (&["run", "m.yaml"], 3, "error"),
        (&["run", "m.yaml", "--yes", "--max-cost", "1"], 3, "error"),
        (&["run", "m.yaml", "-q", "--yes", "--base-url", "http://127.0.0.1:9"], 6, "stopping"),
    ] {
        let args = [args, &["--log-format", "json"]].concat();
        let program = here.shotlist(&args).env("SHOTLIST_API_KEY", "the-key");
        let program =
            if args.contains(&"--base-url") { program } else { program.env("SHOTLIST_BASE_URL", &service.url()) };
        let ended = program.ends_with(code).lacks(&["secret prompt", "the-key"]);
        let events: Vec<Value> =
            ended.stderr.lines().map(|line| serde_json::from_str(line).expect("a JSON object a line")).collect();
        assert!(events.iter().any(|event| event["event"] == told), "{args:?}: {}", ended.stderr);
        let last = events.last().expect("a last one");
        assert_eq!(
            (&last["event"], &last["exit_code"]),
            (&"finished".into(), &code.into()),
            "{args:?}: {}",
            ended.stderr
        );
    }
    // Also in the echo of a service. A quiet run reports the necessary facts as data.
    let echoing = Service::scripted(|asked| {
        json(400, &serde_json::json!({ "error": { "message": format!("no: {}", asked.body) } }))
    });
    for quiet in [["--batch", "loud"].as_slice(), &["--batch", "quiet", "-q"]] {
        let ended = here.run(&echoing, &[quiet, &["--log-format", "json"]].concat()).ends_with(1);
        let prompt = "a cat";
        assert!(!ended.stderr.contains(prompt), "{}", ended.stderr);
        let mut rejected: Value = serde_json::from_str(&ended.line("\"job\":\"one\"")).expect("JSON");
        rejected["ts"].take();
        insta::allow_duplicates! {
            insta::assert_snapshot!(rejected, @r#"{"code":"rejected","error":"the service rejected the submission (HTTP 400): no: {\"duration\":5,\"model\":\"beta-2.0-lite\",\"prompt\":\"[the prompt]\",\"size\":\"1280x720\"}","event":"rejected","job":"one","level":"WARN","ts":null}"#);
        }
    }
    // Silent where everything went well, in this form, too.
    let ended = here.run(&service, &["-q", "--log-format", "json"]).ends_with(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("", ""));
}

#[test]
fn verbose_run_shows_each_request() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    let ended = here.run(&service, &["-v", "--concurrency", "1"]).ends_with(0);
    let told = |line: &str| {
        let (what, time) = line.rsplit_once(" in ").unwrap_or((line, ""));
        if time.ends_with(" ms") { format!("{what} in TIME") } else { line.to_owned() }
    };
    let mut lines: Vec<String> = ended.stderr.lines().map(told).collect();
    lines.sort();
    insta::assert_snapshot!(lines.join("\n"), @"
    2 jobs to submit for $11.25
    DEBUG GET /v1/videos/shotlist-preflight 404 in TIME
    DEBUG GET /v1/videos/t0 200 in TIME
    DEBUG GET /v1/videos/t1 200 in TIME
    DEBUG GET a video of 127.0.0.1 200 in TIME
    DEBUG GET a video of 127.0.0.1 200 in TIME
    DEBUG POST /v1/videos 200 in TIME
    DEBUG POST /v1/videos 200 in TIME
    completed one
    completed two
    downloaded one, 294 B: one.mp4
    downloaded two, 294 B: two.mp4
    submitted one ($3.75) as t0
    submitted two ($7.50) as t1
    ");
    let ended = here.run(&service, &["-v", "--log-format", "json", "--batch", "b"]).ends_with(0);
    let events = ended.stderr.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let requests: Vec<Value> = events.filter(|event| event["event"] == "request").collect();
    // Before the first submission, one request shows that the service responds.
    assert_eq!(requests[0]["method"], "GET");
    let first = &requests[1];
    assert_eq!(
        (&first["method"], &first["path"], &first["status"]),
        (&"POST".into(), &"/v1/videos".into(), &200.into())
    );
    assert!(first["ms"].is_u64(), "{first}");
}

#[test]
fn init_writes_a_valid_manifest_and_never_overwrites() {
    let here = Workspace::new();
    here.shotlist(&["init"]).ends_with(0);
    let plan = here.shotlist(&["run", "shotlist.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.starts_with("my-campaign: 4 jobs\n"), "{plan}");
    here.shotlist(&["init"]).fails_with("file-exists", 74);
    here.shotlist(&["init", "other.yaml"]).ends_with(0);
}

#[test]
fn bad_usage_exits_with_two() {
    let here = Workspace::with_manifest(TWO_JOBS);
    for args in [
        ["run"].as_slice(),
        &["run", "m.yaml", "--concurrency", "0"],
        &["run", "m.yaml", "--max-cost", "a lot"],
        &["run", "m.yaml", "--deadline", "soon"],
        &["run", "m.yaml", "--select", "[z-"],
        &["run", "m.yaml", "--set", "x"],
        &["run", "missing.yaml"],
        &["frobnicate"],
    ] {
        let ended = here.shotlist(args).ends_with(2);
        assert!(ended.stderr.starts_with("error"), "{args:?}: {}", ended.stderr);
    }
    assert_eq!(here.files(), ["m.yaml"]);
}

/// A device that is always full plays the full disk under stdout.
#[cfg(target_os = "linux")]
#[test]
fn unwritable_result_is_no_success() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    for args in ["run m.yaml --plan", "status m.yaml", "run m.yaml --yes"] {
        here.script(&service, &format!("exec \"$0\" {args} >/dev/full")).fails_with("not-writable", 74);
    }
    assert_eq!(here.states(), ["completed", "completed"]);
}

#[test]
fn switch_in_the_environment_is_a_boolean() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    for maybe in ["maybe", "never", " 0"] {
        let program = here.shotlist(&["run", "m.yaml"]).env("SHOTLIST_YES", maybe);
        program.with_service(&service.url()).ends_with(2);
    }
    let program = here.shotlist(&["run", "m.yaml"]).env("SHOTLIST_YES", "no");
    program.with_service(&service.url()).ends_with(3);
    assert_eq!(service.asked().len(), 0);
}

#[cfg(unix)]
#[test]
fn link_to_a_manifest_is_the_same_manifest() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    fs::create_dir(here.path("elsewhere")).expect("a directory");
    std::os::unix::fs::symlink(here.path("m.yaml"), here.path("elsewhere/m.yaml")).expect("a link");
    let plan = here.shotlist(&["run", "elsewhere/m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(plan["totals"]["done"], 2, "{plan}");
}

#[test]
fn all_reports_can_be_written_again_from_the_ledger_alone() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    here.run(&service, &[]).ends_with(0);
    let out = here.path("shotlist-out/m");
    let read = |name: &str| fs::read_to_string(out.join(name)).expect(name);
    let undated = |name: &str| -> Value {
        let mut report: Value = serde_json::from_str(&read(name)).expect("JSON");
        report["written_at"].take();
        report
    };
    let (csv, json) = (read("report.csv"), undated("report.json"));
    for name in ["report.csv", "report.json", "report.html"] {
        fs::remove_file(out.join(name)).expect("gone");
    }
    let asked = service.asked().len();
    // Without URL and key, no request is sent.
    let ended = here.shotlist(&["report", "m.yaml", "--report", "more/again.html"]).ends_with(0);
    insta::assert_snapshot!(ended.stdout, @"
    2 jobs: 2 completed
    $11.25 spent
    videos: 2 in shotlist-out/m, with report.csv, report.json
    to look at it: xdg-open shotlist-out/m/report.html
    to look at it: xdg-open more/again.html
    ");
    assert_eq!((read("report.csv"), undated("report.json")), (csv, json));
    let first_video = |page: &str| {
        let (_, rest) = page.split_once("data-file=\"").expect("a video");
        rest.split('"').next().expect("its path").replace("&#x2f;", "/")
    };
    assert_eq!(first_video(&read("report.html")), "one.mp4");
    let again = fs::read_to_string(here.path("more/again.html")).expect("one more report");
    assert_eq!(first_video(&again), "../shotlist-out/m/one.mp4");
    assert_eq!(service.asked().len(), asked);

    let nothing = Workspace::with_manifest(TWO_JOBS);
    nothing.shotlist(&["report", "m.yaml", "-q"]).ends_with(0);
    assert_eq!(nothing.states(), ["pending", "pending"]);
    assert!(!nothing.path(".shotlist").exists(), "a report made a ledger");
}

#[test]
fn json_report_always_matches_its_schema() {
    let service = Service::scripted(|asked| match asked {
        asked if asked.submits("in doubt") => crate::support::Answer::Hangup,
        asked if asked.path.ends_with("t1") => json(
            200,
            &serde_json::json!({ "id": "t1", "status": "failed", "error": { "message": "no", "code": 7, "more": [1] } }),
        ),
        _ => crate::support::Answer::Well,
    });
    let manifest = "version: 1\nfaces: { f: { review: pending } }\ndefaults: { model: beta-2.0-lite }\njobs:\n  \
                    - { id: a, prompt: good, tags: [x] }\n  - { id: b, prompt: bad }\n  - { id: c, prompt: in doubt }\n  \
                    - { id: d, prompt: face, face: f }\n  - { id: e, prompt: '=1+1 as text' }\n";
    let here = Workspace::with_manifest(manifest);
    here.run(&service, &["--concurrency", "1"]).ends_with(7);
    here.write("m.yaml", manifest.replace("prompt: good", "prompt: better"));
    here.run(&service, &["--exclude", "e"]).ends_with(7);
    let schema: Value = serde_json::from_str(include_str!("../../../schemas/report.schema.json")).expect("JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let status = here.shotlist(&["status", "m.yaml", "--format", "json"]).ends_with(0);
    for report in [here.report(), serde_json::from_str(&status.stdout).expect("JSON")] {
        let errors: Vec<String> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(report["superseded"][0]["file"], "a~1.mp4");
    }
    assert_eq!(here.states(), ["completed", "failed", "in_doubt", "held", "completed"]);
}

/// The sums on the contact sheet match the ledger in any state of the jobs.
#[test]
fn sheet_adds_up_to_the_ledger() {
    let service = Service::scripted(|asked| {
        if asked.path.ends_with("t0") {
            let error = serde_json::json!({ "message": "no" });
            return json(200, &serde_json::json!({ "id": "t0", "status": "failed", "error": error }));
        }
        crate::support::Answer::Well
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    // One fails and is tried again, two is changed, and then it is gone.
    here.run(&service, &["--concurrency", "1"]).ends_with(1);
    here.run(&service, &["--retry-failed"]).ends_with(0);
    here.write("m.yaml", TWO_JOBS.replace("a dog", "a wolf"));
    here.run(&service, &[]).ends_with(0);
    here.write("m.yaml", "version: 1\njobs:\n  - { id: one, model: beta-2.0-lite, prompt: a cat }\n");
    here.shotlist(&["report", "m.yaml", "-q"]).ends_with(0);
    let totals = here.report()["totals"].clone();
    assert_eq!((totals["spent_usd"].as_str(), totals["unknown_usd"].as_str()), (Some("18.75"), Some("3.75")));
    let page = fs::read_to_string(here.path("shotlist-out/m/report.html")).expect("the page");
    for shown in [
        "<dt>spent</dt><dd>$18.75</dd>",
        "<dt>of unknown charge</dt><dd>$3.75</dd>",
        "<li class=\"price\">$3.75 spent, $3.75 unknown</li>",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}

/// A file in the way of a report is named once, with its cause; a plan writes no report, and does not mind.
#[test]
fn file_in_place_of_a_report_is_reported_once() {
    let (service, here) = (Service::well(), Workspace::with_manifest(TWO_JOBS));
    fs::create_dir_all(here.path("shotlist-out/m/report.csv")).expect("a directory");
    let refused = here.run(&service, &[]).ends_with(2).stderr;
    assert_eq!(refused.matches("can't be read to see whether it is a report").count(), 1, "{refused}");
    assert_eq!(refused.matches("not a plain file").count(), 1, "{refused}");
    here.run(&service, &["--plan", "--report", "report.txt"]).ends_with(0);
    here.run(&service, &["--report", "report.txt"]).ends_with(2);
    assert_eq!(service.asked().len(), 0);
}
