//! Expectations of users of other tools: command line, words, and environment.

use serde_json::Value;

use crate::support::{Answer, Program, Service, Workspace, codes, has_code, json as answer, numbered_jobs};

#[test]
fn empty_variable_is_unset() {
    let (service, here) = (Service::well(), Workspace::with_manifest(&numbered_jobs(2)));
    let names = [
        "PLAN",
        "FORMAT",
        "YES",
        "MAX_COST",
        "SELECT",
        "EXCLUDE",
        "TAG",
        "CONCURRENCY",
        "POLL_INTERVAL",
        "POLL_FLOOR",
        "FIRST_POLL",
        "DEADLINE",
        "MAX_FAILURES",
        "MAX_DOUBTS",
        "RETRIES",
        "RETRY_FAILED",
        "RETAKE",
        "OUT",
        "REPORT",
        "NO_DOWNLOAD",
        "LEDGER",
        "API_KEY_FILE",
        "ALLOW_HTTP",
        "SET",
        "BATCH",
        "CATALOG",
        "SANDBOX",
        "ROOT",
        "SAME_ACCOUNT",
        "PROGRESS",
        "QUIET",
        "VERBOSE",
        "COLOR",
        "LOG_FORMAT",
        "RPS",
        "HEADER",
        "STRICT",
    ];
    let blank =
        |program| names.iter().fold(program, |program: Program, name| program.env(&format!("SHOTLIST_{name}"), ""));
    // With options for its pace, because the usual one takes seconds.
    blank(here.run(&service, &["--first-poll", "0s", "--poll-interval", "50ms"])).ends_with(0);
    blank(here.shotlist(&["run", "m.yaml", "--plan"])).ends_with(0);
    assert_eq!(service.posts().len(), 2);
    let no_key = here.run(&service, &["--retake", "*"]);
    no_key.env("SHOTLIST_API_KEY", "").env("SHOTLIST_API_KEY_FILE", "").fails_with("key-missing", 2);
}

#[test]
fn format_variable_is_for_runs_and_a_flag_wins() {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let format = |args: &[&str], value: &str| here.shotlist(args).env("SHOTLIST_FORMAT", value);
    assert!(format(&["run", "m.yaml", "--plan"], "json").ends_with(0).stdout.starts_with('{'));
    assert!(format(&["status", "m.yaml"], "json").ends_with(0).stdout.lines().count() > 1);
    format(&["run", "m.yaml", "--plan"], "pdf").ends_with(2);
    let said = here.shotlist(&["run", "m.yaml", "--plan", "-v"]).env("SHOTLIST_QUIET", "1").ends_with(0);
    assert!(!said.stdout.is_empty());
    here.shotlist(&["run", "m.yaml", "--plan", "--quiet"]).env("SHOTLIST_VERBOSE", "2").ends_with(0);
    here.shotlist(&["run", "m.yaml", "--plan", "-q", "-v"]).ends_with(2);
}

#[test]
fn words_of_other_tools_lead_to_the_command() {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    assert!(here.shotlist(&["run", "m.yaml", "--dry-run"]).ends_with(0).stdout.starts_with("m: 1 job\n"));
    for (args, told) in [
        (&["plan", "m.yaml"][..], "`shotlist run MANIFEST --plan` checks and prices"),
        (&["validate", "m.yaml"], "`shotlist run MANIFEST --plan` checks"),
        (&["m.yaml"], "a command comes first: `shotlist run MANIFEST`"),
        (&["run", "m.yaml", "-n"], "`--plan` prices a manifest"),
        (&["run", "m.yaml", "--plam"], "a similar argument exists: '--plan'"),
        (&["schema"], "manifest|plan|report|spend|diagnostics"),
        (&["resolve", "m.yaml", "j0"], "error[option-invalid]: "),
    ] {
        let ended = here.shotlist(args).env("SHOTLIST_BASE_URL", "http://x").ends_with(2).lacks(&["as a value, use"]);
        assert!(ended.stderr.contains(told), "{args:?}: {}", ended.stderr);
    }
}

#[test]
fn status_of_a_selection_has_only_its_jobs() {
    let service = Service::losing("number 2");
    let here = Workspace::with_manifest(&numbered_jobs(3));
    here.run(&service, &[]).ends_with(7);
    let money = |status: &Value| {
        let totals = &status["totals"];
        ["jobs", "spent_usd", "at_risk_usd"].map(|sum| totals[sum].to_string().replace('"', ""))
    };
    let some = here.status(&["--select", "j0"]);
    assert_eq!((money(&some), &some["superseded"]), (["1", "0.90", "0.00"].map(str::to_owned), &serde_json::json!([])));
    assert_eq!(money(&here.status(&[])), ["3", "1.80", "0.90"]);
}

#[test]
fn doubt_has_a_price_in_the_plan_and_keeps_statements() {
    let service = Service::scripted(|_| Answer::Hangup);
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(7);
    let plan = |form: &str| here.shotlist(&["run", "m.yaml", "--plan", "--format", form]).ends_with(0).stdout;
    insta::assert_snapshot!(plan("text"), @"
    m: 1 job

       ACTION    JOB  MODEL    SHAPE  LENGTH    COST  WHY
       in doubt  j0   alpha-2  16:9     12 s  $0.90?  may be charged: the connection broke before the response came

    nothing to buy
    1 job in doubt: $0.90 at risk, never sent again by itself; `shotlist resolve m.yaml` lists them
    ");
    let json = here.plan(&[]);
    assert_eq!((&json["schema_version"], &json["totals"]["at_risk_usd"]), (&1.into(), &"0.90".into()));
    assert!(codes(&json).contains(&"in-doubt"), "{json}");
    here.shotlist(&["resolve", "m.yaml", "j0", "--never-created"]).ends_with(0);
    let status = here.status(&[]);
    assert!(status["jobs"][0]["declared"].as_str().is_some_and(|declared| !declared.is_empty()), "{status}");
}

#[cfg(unix)]
#[test]
fn unwritten_report_is_not_listed() {
    let (service, switch) = Service::slow();
    let here = Workspace::with_manifest(&numbered_jobs(1));
    let run = here.run(&service, &["--report", "more/again.json"]).starts();
    crate::support::wait_until("the report is there", || {
        here.path("more/again.json").exists() && !service.posts().is_empty()
    });
    // A directory in its place can't be replaced.
    std::fs::remove_file(here.path("more/again.json")).expect("removed");
    std::fs::create_dir_all(here.path("more/again.json/x")).expect("a directory");
    switch.store(true, std::sync::atomic::Ordering::SeqCst);
    let ended = crate::support::Ended::wait_for(run);
    assert_eq!(ended.code, Some(74), "{}", ended.stderr);
    let ended = ended.shows("not-writable");
    insta::assert_snapshot!(ended.stdout, @"
    1 job: 1 completed
    $0.90 spent
    videos: 1 in shotlist-out/m, with report.csv, report.json
    to look at it: xdg-open shotlist-out/m/report.html
    ");
}

#[test]
fn wrong_url_is_reported_after_one_request() {
    let page = "<!doctype html><title>Log in to the hotel's network</title>";
    let html = [("content-type", "text/html")];
    for (told, status, body) in [
        ("HTTP 404", 404, "{\"detail\": \"Not Found\"}"),
        ("HTTP 405", 405, ""),
        ("<title>Welcome to nginx!</title>", 404, "<html><title>Welcome to nginx!</title>"),
    ] {
        let service = Service::scripted(move |_| crate::support::raw(status, &[], body));
        let here = Workspace::with_manifest(&numbered_jobs(3));
        let ended = here.run(&service, &[]).ends_with(6);
        assert!(ended.stderr.contains(&service.url()) && ended.stderr.contains(told), "{}", ended.stderr);
        assert_eq!(ended.stderr.matches("error[stopping]").count(), 1, "{}", ended.stderr);
        assert_eq!(service.posts().len(), 1);
        assert!(here.states().iter().all(|state| state == "pending"), "{:?}", here.states());
    }
    // A page instead of a response: only this job is in doubt.
    let service = Service::scripted(move |_| crate::support::raw(200, &html, page));
    let here = Workspace::with_manifest(&numbered_jobs(3));
    let ended = here.run(&service, &[]).ends_with(6);
    insta::assert_snapshot!(ended.line("error[in-doubt]").replace(&service.url(), "URL"), @"error[in-doubt]: j0 is in doubt: the response is an HTML page (HTTP 200): <!doctype html><title>Log in to the hotel's network</title>; requested URL/v1/videos");
    assert_eq!((service.posts().len(), here.states().iter().filter(|state| *state == "in_doubt").count()), (1, 1));
    // A model that a service does not have is the job's own affair.
    let service = Service::scripted(|_| answer(404, &serde_json::json!({ "error": { "message": "no such model" } })));
    let here = Workspace::with_manifest(&numbered_jobs(1));
    here.run(&service, &[]).ends_with(1);
    assert_eq!(here.states(), ["rejected"]);
}

#[test]
fn rejecting_service_gets_few_submissions() {
    let refusing = |status: u16, from: usize| {
        Service::scripted(move |asked| match asked.method.as_str() {
            "POST" if asked.earlier >= from => answer(status, &serde_json::json!({ "detail": "not you" })),
            _ => Answer::Well,
        })
    };
    // An empty account, and a wrong URL from the beginning; but one bad job after a good one is its own affair.
    for (status, from, most, left) in [(402, 0, 1, true), (422, 0, 22, true), (422, 1, 30, false), (404, 1, 30, false)]
    {
        let (service, here) = (refusing(status, from), Workspace::with_manifest(&numbered_jobs(30)));
        let ended = here.run(&service, &[]).ends_with(1);
        assert!(service.posts().len() <= most, "{status} from {from}: {} submissions", service.posts().len());
        assert_eq!(here.states().contains(&"pending".to_owned()), left, "{status} from {from}");
        assert_eq!(has_code(&ended.stderr, "stopping"), left, "{}", ended.stderr);
    }
}

/// Some servers respond with a redirect to the result. One such response is enough.
#[test]
fn redirect_stops_submissions_also_during_a_run() {
    let elsewhere = [("location", "https://login.example.com/")];
    let service = Service::scripted(move |asked| match asked.method.as_str() {
        "POST" if asked.earlier >= 3 => crate::support::raw(302, &elsewhere, ""),
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&numbered_jobs(60));
    let ended = here.run(&service, &["--concurrency", "1"]).ends_with(6);
    insta::assert_snapshot!(ended.line("error[stopping]"), @"error[stopping]: stopped submitting: the address leads elsewhere, to https://login.example.com/ (HTTP 302); nothing was made there");
    assert_eq!(service.posts().len(), 4, "asked again after a redirect");
    assert_eq!(here.states().iter().filter(|state| *state == "completed").count(), 3);
}

#[test]
fn ledger_url_is_refused_without_its_password() {
    let here = Workspace::with_manifest(&numbered_jobs(1));
    for url in ["postgress://ann:secret@db/books", "postgres://ann:se@cret@db/books", "postgres://ann:secret@db"] {
        for (words, variable) in [(vec!["--ledger", url], ""), (vec![], url)] {
            let words: Vec<&str> = ["status", "m.yaml"].into_iter().chain(words).collect();
            let ended = here.shotlist(&words).env("SHOTLIST_LEDGER", variable).ends_with(2).lacks(&["cret"]);
            let help = ended.line("help: write");
            assert!(help.starts_with("help: write `postgres://USER@HOST:PORT/DATABASE`"), "{help}");
        }
    }
    let ended = here.shotlist(&["status", "m.yaml", "--ledger", ""]).ends_with(2);
    insta::assert_snapshot!(ended.stderr, @"
    error: the ledger must be a path or a URL, found an empty string
      help: name a ledger, or leave out `--ledger`

    Usage: shotlist status [OPTIONS] <MANIFEST>

    For more information, try '--help'.
    ");
    // Only in the environment is a password hidden from other users.
    let url = "postgres://ann:secret@127.0.0.1:1/books";
    for words in [&["status", "m.yaml", "--ledger", url][..], &["ledger", "copy", url, "x.db"]] {
        let ended = here.shotlist(words).ends_with(2).lacks(&["secret"]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(ended.line("PGPASSWORD"), @"help: set the password in `PGPASSWORD` or `PGPASSFILE`, or the whole URL in `SHOTLIST_LEDGER`");
        }
    }
    here.shotlist(&["status", "m.yaml"]).env("SHOTLIST_LEDGER", url).ends_with(74).lacks(&["secret"]);
    assert!(!here.path("x.db").exists());
}

/// Where no shell expands a name, it would become a directory, and a ledger in it would be empty.
#[test]
fn unexpanded_shell_names_are_refused_before_a_file() {
    let here = Workspace::with_manifest(crate::support::TWO_JOBS);
    let before = here.files();
    let run = ["run", "m.yaml", "--sandbox", "--yes"];
    for option in [
        "--out=~anna/videos",
        "--out=$HOME/videos",
        "--report=%TEMP%/r.csv",
        "--ledger=~",
        "--catalog=https://x/c.yaml",
    ] {
        here.shotlist(&[&run[..], &[option]].concat()).ends_with(2);
    }
    for (name, value) in [("SHOTLIST_OUT", "~"), ("SHOTLIST_LEDGER", "file:///books.db"), ("SHOTLIST_ROOT", "${HOME}")]
    {
        here.shotlist(&run).env(name, value).ends_with(2);
    }
    let told = here.shotlist(&["run", "$HOME/m.yaml", "--plan"]).ends_with(2).stderr;
    insta::assert_snapshot!(told, @"
    error: `$HOME/m.yaml` for `<MANIFEST>`: must be a path, found a variable
      help: write the whole path, or `./NAME` for a file of that name; only a shell expands it, outside of quotes

    Usage: shotlist run [OPTIONS] <MANIFEST>

    For more information, try '--help'.
    ");
    assert_eq!(here.files(), before);

    let set = ["limit", "set", "--month", "100"];
    let home = here.path("home");
    std::fs::create_dir(&home).expect("a directory");
    let home = home.to_str().expect("UTF-8");
    here.shotlist(&set).env("SHOTLIST_LEDGER", "~/books.db").env("HOME", home).ends_with(0);
    here.shotlist(&["run", "~/m.yaml", "--plan"]).env("HOME", here.root().to_str().expect("UTF-8")).ends_with(0);
    assert!(here.path("home/books.db").exists() && !here.path("~").exists());
}
