//! Outside text in every view of a terminal, a log, or a shell: names, IDs, columns, paths, and messages of the
//! service.

use std::process::{Command, Stdio};

use serde_json::json;

use crate::support::{Answer, Ended, Service, Workspace, line_of, output_of, raw};

/// Sets a title, clears the screen, changes the direction, hides later text, and imitates our lines.
const EVIL: &str = "x\u{1b}]0;OWNED\u{7}\u{1b}[2J\u{9b}8m\u{202e}\u{2066}\nerror: forged\r\nmoney: nothing was spent\u{2028}completed j9";

/// Nothing that steers, and no line that only the evil text can have begun.
#[track_caller]
fn assert_harmless(what: &str, shown: &str) {
    // Without colors, so that the program itself writes no escape sequences.
    let steers =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert!(!shown.contains(steers), "{what}: {:?}", shown.chars().filter(|c| steers(*c)).collect::<String>());
    for line in shown.lines() {
        let forged = ["error: forged", "money: nothing was spent", "completed j9"];
        assert!(!forged.iter().any(|forged| line.starts_with(forged)), "{what}: {shown}");
    }
}

fn evil_manifest() -> String {
    let evil = serde_json::to_string(EVIL).expect("JSON");
    // YAML does not take every escape of JSON, and JSON escapes no C1 character.
    let evil = evil.replace('\u{9b}', "\\x9b").replace('\u{202e}', "\\u202e").replace('\u{2066}', "\\u2066");
    let evil = evil.replace('\u{2028}', "\\u2028");
    format!(
        "version: 1\nname: {evil}\nbatch: {evil}\ndefaults: {{ model: alpha-2 }}\njobs:\n  \
         - {{ id: a, prompt: {evil}, tags: [{evil}] }}\n  - {{ id: b, prompt: fails }}\n  - {{ id: c, prompt: refused }}\n  \
         - {{ id: d, prompt: doubtful }}\n"
    )
}

/// A service with the same text in every place for one.
fn evil_service() -> Service {
    Service::scripted(|asked| {
        let error = || json!({ "message": EVIL, "code": EVIL });
        match asked.method.as_str() {
            "POST" if asked.submits("refused") => crate::support::json(422, &json!({ "error": error() })),
            "POST" if asked.submits("doubtful") => crate::support::json(500, &json!({ "error": error() })),
            "POST" if asked.submits("fails") => {
                crate::support::json(200, &json!({ "id": format!("f{EVIL}"), "status": EVIL }))
            }
            "POST" => crate::support::json(200, &json!({ "id": format!("a{EVIL}"), "status": EVIL })),
            _ if asked.path.starts_with("/v1/videos/f") => {
                crate::support::json(200, &json!({ "status": "failed", "error": error() }))
            }
            _ if asked.earlier == 0 => crate::support::json(200, &json!({ "status": EVIL })),
            _ if asked.path.ends_with("/content") => raw(404, &[], EVIL),
            _ => crate::support::json(
                200,
                &json!({ "status": "completed", "video_url": format!("http://127.0.0.1:1/{EVIL}") }),
            ),
        }
    })
}

#[test]
fn outside_text_never_steers_a_terminal_or_adds_a_line() {
    let (service, here) = (evil_service(), Workspace::with_manifest(&evil_manifest()));
    for args in [
        ["run", "m.yaml", "--plan"].as_slice(),
        &["run", "m.yaml", "--plan", "--format", "json"],
        &["run", "m.yaml", "--plan", "--format", "markdown"],
        &["run", "m.yaml"],
        &["run", "m.yaml", "--yes", "-vv"],
        &["run", "m.yaml", "--yes", "-v", "--log-format", "json", "--retake", "a"],
        &["status", "m.yaml"],
        &["status", "m.yaml", "-v"],
        &["status", "m.yaml", "--format", "json"],
        &["report", "m.yaml"],
        &["spend"],
        &["spend", "--format", "json"],
        &["resolve", "m.yaml", "d", "--task", EVIL],
        &["run", "m.yaml", "--select", EVIL],
        &["run", "m.yaml", "--set", &format!("{EVIL}=1")],
        &["run", EVIL],
        &["run", "m.yaml", "--catalog", EVIL],
        &["run", "m.yaml", "--plan", "--ledger", EVIL],
        &["init", &format!("{}/none.yaml", EVIL.replace('/', ""))],
    ] {
        let program = here.shotlist(args).with_service(&service.url());
        let Ended { stdout, stderr, .. } = program.ends().lacks(&["panicked"]);
        assert_harmless(&format!("{args:?}, stdout"), &stdout);
        assert_harmless(&format!("{args:?}, stderr"), &stderr);
    }
    assert!(service.posts().len() >= 4);
    // The texts themselves are kept byte for byte where a script reads them.
    let status = here.shotlist(&["status", "m.yaml", "--format", "json"]).ends_with(0).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((status["name"].as_str(), status["jobs"][0]["prompt"].as_str()), (Some(EVIL), Some(EVIL)));
}

#[test]
fn no_diagnostic_steers_a_terminal() {
    let csv = format!("id,{},b\n1,x,\u{1b}[31m\n2,y\n", EVIL.replace(['\n', '\r'], " "));
    let evil = serde_json::to_string(&EVIL.replace('\u{9b}', "")).expect("JSON");
    for manifest in [
        format!(
            "version: 1\n{evil}: 1\njobs: [{{ id: {evil}, model: {evil}, prompt: x, face: {evil}, size: {evil} }}]\n"
        ),
        format!(
            "version: 1\njobs:\n  - {{ id: {evil}, model: beta-2.0-lite, prompt: '{{{{ row.nope }}}}', for_each: rows.csv }}\n"
        ),
        format!(
            "version: 1\ntimezone: {evil}\njobs:\n  - {{ id: a, model: alpha-2, prompt_file: {evil}, aspect_ratio: {evil} }}\n"
        ),
        "version: 1\njobs:\n  - { id: a, model: alpha-2, prompt: \"\u{202e}evil\", duration: 13 } # \u{2066}\n"
            .to_owned(),
        "version: 1\njobs:\n  - { id: a, prompt: \u{1b}[2J }\n".to_owned(),
    ] {
        let here = Workspace::with_manifest(&manifest).file("rows.csv", &csv);
        for args in [["run", "m.yaml", "--plan"].as_slice(), &["run", "m.yaml", "--plan", "--format", "json"]] {
            let Ended { code, stdout, stderr } = here.shotlist(args).ends();
            assert_eq!(code, Some(2), "{stderr}");
            assert_harmless(&manifest, &stdout);
            assert_harmless(&manifest, &stderr);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn question_about_money_cannot_be_faked() {
    let name = "x: 1 job, $0.90\\n\\nSpend up to $0.90? [y/N] \\e[8m";
    let manifest = format!("version: 1\nname: \"{name}\"\njobs: [{{ id: a, model: alpha-2, prompt: a }}]\n");
    let (service, here) = (Service::well(), Workspace::with_manifest(&manifest));
    let command = format!("{} run m.yaml", env!("CARGO_BIN_EXE_shotlist"));
    let mut terminal = Command::new("script");
    terminal.args(["-q", "-e", "-c", &command, "/dev/null"]).current_dir(here.root()).env("TERM", "xterm");
    terminal
        .env("SHOTLIST_BASE_URL", service.url())
        .env("SHOTLIST_API_KEY", "k")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let shown = output_of(terminal.spawn().expect("script is there"));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let questions: Vec<&str> = shown.lines().filter(|line| line.starts_with("Spend up to")).collect();
    assert!(
        questions.len() == 1 && questions[0].starts_with(&format!("Spend up to $0.90 at {}? [y/N]", service.url())),
        "{shown:?}"
    );
    let hidden = "\u{1b}[8m";
    assert!(!shown.contains(hidden), "{shown:?}");
    assert_eq!(service.asked().len(), 0);
}

#[test]
fn printed_command_can_be_pasted() {
    // With a directory, a file, and a batch that need quotes in a shell, and with a separate ledger.
    let service = Service::scripted(|asked| if asked.method == "POST" { Answer::Hangup } else { Answer::Well });
    let here =
        Workspace::new().file("my list; touch x.yaml", "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n");
    let args = ["run", "my list; touch x.yaml", "--yes", "--batch", "it's today", "--ledger", "a ledger.db"];
    let program = here.shotlist(&args).with_service(&service.url());
    let stderr = program.ends_with(7).stderr;
    let (_, rest) = stderr.split_once("if there is certainly none: ").expect("a command");
    let command = rest.lines().next().expect("a line").replacen("shotlist", "\"$0\"", 1);
    insta::assert_snapshot!(command, @r#"`"$0" resolve 'my list; touch x.yaml' a --never-created --batch 'it'\''s today' --ledger 'a ledger.db'`"#);
    here.script(&service, &command).ends_with(0);
    assert!(!here.path("x.yaml").exists());
}

#[test]
fn echoed_key_is_written_nowhere() {
    let key = "sk-very-secret-0123456789";
    let service = Service::scripted(|asked| {
        let echoed = asked.headers.get("authorization").cloned().unwrap_or_default();
        match asked.method.as_str() {
            "POST" if asked.submits("refused") => {
                crate::support::json(400, &json!({ "message": format!("bad key {echoed}") }))
            }
            "POST" if asked.submits("lost") => raw(502, &[], format!("<p>{echoed}")),
            "POST" => Answer::Well,
            _ => crate::support::json(
                200,
                &json!({ "status": "failed", "error": { "message": echoed, "code": echoed } }),
            ),
        }
    });
    let here = Workspace::with_manifest(
        "version: 1\ndefaults: { model: alpha-2 }\njobs: [{ id: a, prompt: refused }, { id: b, prompt: lost }, { id: c, prompt: x }]\n",
    );
    let ended = here.run(&service, &["-vvv"]).env("SHOTLIST_API_KEY", key).ends_with(7).lacks(&[key]);
    insta::assert_snapshot!(line_of(&ended.stderr, "bad key"), @"warning[rejected]: a was rejected, and costs nothing: the service rejected the submission (HTTP 400): bad key Bearer ***");
    for file in here.files() {
        let bytes = std::fs::read(here.path(&file)).expect("a file");
        assert!(!bytes.windows(key.len()).any(|part| part == key.as_bytes()), "{file}");
    }
}

#[test]
fn failing_quiet_run_names_the_cause() {
    let manifest = "version: 1\njobs: [{ id: a, model: alpha-2, prompt: a }]\n";
    for (status, code, told) in [(401, 4, "stopping"), (422, 1, "rejected"), (500, 7, "in-doubt")] {
        let service = Service::scripted(move |_| crate::support::json(status, &json!({ "message": "because" })));
        let here = Workspace::with_manifest(manifest);
        let ended = here.run(&service, &["-q"]).ends_with(code).shows(told);
        line_of(&ended.stderr, "because");
    }
}
