//! The text of each refusal of the command line. Refusals of the session are in `src/cli/exit.rs`.

use std::fs;

use crate::support::{Answer, Ended, Service, TWO_JOBS, Workspace, has_code, json};

/// A code, its arguments, and the environment except URL and key.
type Case = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const CASES: &[Case] = &[
    ("approval-invalid", &["run", "m.yaml", "--approved", "nonsense"], &[]),
    ("bill-invalid", &["reconcile", "bill.csv", "--task-column", "t", "--usd-column", "u"], &[]),
    ("catalog-invalid", &["run", "m.yaml", "--plan", "--catalog", "missing.yaml"], &[]),
    ("catalog-invalid", &["run", "m.yaml", "--plan", "--catalog", "m.yaml"], &[]),
    ("choices-invalid", &["run", "m.yaml", "--plan", "--retake", "@missing.txt"], &[]),
    ("choices-invalid", &["run", "m.yaml", "--plan", "--retake", "@choices.json"], &[]),
    ("file-exists", &["init", "m.yaml"], &[]),
    ("key-invalid", &["run", "due.yaml", "--yes"], &[("SHOTLIST_API_KEY", "a\nb")]),
    ("key-invalid", &["run", "due.yaml", "--yes", "--api-key-file", "missing.key"], &[]),
    ("key-missing", &["run", "due.yaml", "--yes"], &[("SHOTLIST_API_KEY", "")]),
    ("label-unknown", &["spend", "m.yaml", "--by", "client"], &[]),
    ("ledger-missing", &["spend", "--ledger", "missing.db"], &[]),
    ("ledger-not-empty", &["ledger", "copy", ".shotlist/ledger.db", "other/.shotlist/ledger.db"], &[]),
    ("ledger-unavailable", &["run", "m.yaml", "--yes", "--ledger", "m.yaml"], &[]),
    ("manifest-missing", &["spend", "missing.yaml"], &[]),
    ("manifest-missing", &["run", "jobs.csv", "--plan"], &[]),
    ("no-match", &["run", "m.yaml", "--plan", "--select", "thr*"], &[]),
    ("no-match", &["run", "m.yaml", "--plan", "--tag", "hero"], &[]),
    ("no-match", &["run", "m.yaml", "--plan", "--retake", "on"], &[]),
    ("not-a-report", &["run", "due.yaml", "--yes", "--report", "notes.json"], &[]),
    ("program-invalid", &["run", "due.yaml", "--yes", "--exec", "missing-program"], &[]),
    ("program-invalid", &["run", "due.yaml", "--yes", "--exec", "an 'open quote"], &[]),
    ("replaces-input", &["run", "own.yaml", "--yes", "--out", "."], &[]),
    ("sheet-invalid", &["init", "--from", "missing.csv", "new.yaml"], &[]),
    ("topic-unknown", &["help", "exit-code"], &[]),
    ("topic-unknown", &["help", "weather"], &[]),
    ("url-invalid", &["run", "due.yaml", "--yes", "--base-url", "ftp://example.com"], &[]),
    ("url-invalid", &["run", "due.yaml", "--yes", "--base-url", "http://example.com"], &[]),
    ("warnings-not-accepted", &["run", "twins.yaml", "--yes", "-q"], &[]),
    ("url-missing", &["run", "due.yaml", "--yes"], &[("SHOTLIST_BASE_URL", "")]),
];

/// A directory with a completed run, and one more with another.
fn used(service: &Service) -> Workspace {
    let here = Workspace::with_manifest(TWO_JOBS)
        .file("jobs.csv", "prompt\na cat\n")
        .file("bill.csv", "task,usd\n")
        .file("choices.json", "{}")
        .file("notes.json", "[1]")
        .file("own.yaml", "version: 1\njobs: [{ id: a, model: alpha-2, prompt_file: p.mp4, file: p.mp4 }]\n")
        .file("p.mp4", "a prompt")
        .file(
            "twins.yaml",
            "version: 1\ndefaults: { model: alpha-2, prompt: [PRODUCT] on a table }\njobs: [{ id: a }, { id: b }]\n"
                .replace("[PRODUCT] on a table", "\"[PRODUCT] on a table\""),
        )
        .file("due.yaml", TWO_JOBS.replace("a cat", "a bird").replace("a dog", "a fish"))
        .file("other/m.yaml", TWO_JOBS);
    for manifest in ["m.yaml", "other/m.yaml"] {
        here.shotlist(&["run", manifest, "--yes", "--quiet"]).with_service(&service.url()).ends_with(0);
    }
    here
}

/// The output of a refusal, without paths of this machine.
fn shown(here: &Workspace, args: &[&str], ended: &Ended) -> String {
    let root = fs::canonicalize(here.root()).expect("a directory");
    let stderr = ended.stderr.replace(&*root.to_string_lossy(), "DIR").replace(&*here.root().to_string_lossy(), "DIR");
    format!("$ shotlist {}\n{}", args.join(" "), stderr)
}

#[test]
fn refusal_texts_match_the_snapshot() {
    let service = Service::well();
    let here = used(&service);
    let posts = service.posts().len();
    let mut texts = Vec::new();
    for (code, args, environment) in CASES {
        let program = here.shotlist(args).with_service(&service.url());
        let ended = environment.iter().fold(program, |program, (name, value)| program.env(name, value)).ends();
        assert!(has_code(&ended.stderr, code), "{args:?} is not {code}: {}", ended.stderr);
        texts.push(shown(&here, args, &ended));
    }
    assert_eq!(service.posts().len(), posts, "a refusal sends nothing");
    insta::assert_snapshot!(texts.join("\n"));
}

#[test]
fn refused_key_text_matches_the_snapshot() {
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" => Answer::Hangup,
        _ => json(401, &serde_json::json!({ "error": { "message": "no such key" } })),
    });
    let here = Workspace::with_manifest(TWO_JOBS);
    here.run(&service, &["--select", "one"]).ends_with(7);
    let args = ["resolve", "m.yaml", "one", "--task", "t9"];
    let refused = here.shotlist(&args).with_service(&service.url()).fails_with("key-refused", 4);
    insta::assert_snapshot!(shown(&here, &args, &refused));
}

#[test]
fn failed_key_command_is_named_without_its_key() {
    let service = Service::well();
    let here = Workspace::with_manifest(TWO_JOBS);
    let run = |command: &str| {
        let args = ["run", "m.yaml", "--yes", "--base-url", &service.url(), "--api-key-command", command];
        here.shotlist(&args).fails_with("key-invalid", 2).lacks(&["secret"]).line("error[key-invalid]")
    };
    insta::assert_snapshot!(run("false"), @"error[key-invalid]: `--api-key-command`: it ended with exit status: 1");
    insta::assert_snapshot!(run("no-such-program"), @"error[key-invalid]: `--api-key-command`: can't start it: No such file or directory");
    insta::assert_snapshot!(run(""), @"error[key-invalid]: `--api-key-command`: it names no program");
    // A background agent keeps its output open, and delays no run.
    let begun = std::time::Instant::now();
    let child = run("sh -c 'sleep 20 2>/dev/null & printf \"a\\tb\\n\"'");
    assert!(begun.elapsed().as_secs() < 15, "{child}");
    insta::assert_snapshot!(child, @"error[key-invalid]: the output of `--api-key-command` must contain an API key: it contains a space, a line break, or another invalid character");
    assert_eq!(run("printf 'secret\\twith a tab'"), child);
    assert!(service.asked().is_empty());
}
