//! A week of cron: seven nights with a set clock and the failures of a real week. The snapshot has each night's exit code, mail, and money. The test
//! runs the command of each mail a day later.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use serde_json::json as value;

use crate::support::{Answer, Ended, Program, Service, Workspace, json, kill, wait_until};

/// The behavior of the service in a night.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    /// No task ends.
    Slow,
    /// It reads the request, and closes the connection.
    Broken,
}

fn manifest(review: &str, limit: &str) -> String {
    format!(
        "version: 1
name: daily
batch: \"{{{{ today }}}}\"
timezone: UTC
budget: {{ day: {limit} }}
faces: {{ mia: {{ review: {review} }} }}
jobs:
  - {{ id: sky, model: alpha-2, prompt: \"The sky on {{{{ today }}}}\" }}
  - {{ id: sea, model: alpha-2, prompt: \"The sea on {{{{ today }}}}\" }}
  - {{ id: mia, model: beta-2.0-lite, face: mia, prompt: \"Mia on {{{{ today }}}}\" }}
"
    )
}

/// The library that sets the clock of a process.
fn clock() -> PathBuf {
    let directories = std::fs::read_dir("/usr/lib").expect("a directory").flatten();
    let mut found =
        directories.map(|entry| entry.path().join("faketime/libfaketime.so.1")).filter(|path| path.exists());
    found.next().expect("libfaketime is there")
}

struct Week {
    here: Workspace,
    service: Service,
    mood: Arc<Mutex<Mood>>,
    key: Arc<Mutex<&'static str>>,
    told: String,
}

impl Week {
    fn new() -> Self {
        let (mood, key) = (Arc::new(Mutex::new(Mood::Well)), Arc::new(Mutex::new("old")));
        let (tonight, valid) = (Arc::clone(&mood), Arc::clone(&key));
        let service = Service::scripted(move |asked| {
            let is_known =
                asked.headers.get("authorization") == Some(&format!("Bearer {}", valid.lock().expect("no panic")));
            match (*tonight.lock().expect("no panic"), asked.method.as_str()) {
                _ if !is_known => json(401, &value!({ "error": { "message": "this key was revoked" } })),
                (Mood::Broken, "POST") => Answer::Hangup,
                (Mood::Slow, "GET") => json(200, &value!({ "status": "in_progress", "progress": 10 })),
                _ => Answer::Well,
            }
        });
        let here = Workspace::new().file("key", "old\n").file("daily.yaml", manifest("pending", "6.00"));
        Self { here, service, mood, key, told: String::new() }
    }

    /// A command at a time of the week, with the environment of the crontab.
    fn at(&self, day: u32, time: &str, args: &[&str]) -> Program {
        let program = self.here.shotlist(args).env("SHOTLIST_BASE_URL", &self.service.url());
        let program = program.env("SHOTLIST_API_KEY_FILE", "key").env("SHOTLIST_FIRST_POLL", "0s");
        let program = program.env("SHOTLIST_POLL_FLOOR", "5ms").env("SHOTLIST_CONCURRENCY", "1");
        let program = program.env("LD_PRELOAD", &clock().to_string_lossy()).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        program.env("FAKETIME", &format!("@2026-11-{day} {time}"))
    }

    fn run(&self, day: u32, args: &[&str]) -> Program {
        self.at(day, "06:00:00", &[&["run", "daily.yaml", "--quiet", "--yes"], args].concat())
    }

    fn feel(&self, mood: Mood) {
        *self.mood.lock().expect("no panic") = mood;
    }

    /// Records the output of a night, and the cost of the day.
    fn note(&mut self, night: &str, day: u32, ended: &Ended) {
        let spend =
            self.at(day, "12:00:00", &["spend", "daily.yaml", "--by", "day", "--format", "csv"]).ends_with(0).stdout;
        let today = spend.lines().find(|line| line.starts_with(&format!("2026-11-{day}")));
        let code = ended.code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string());
        let said = |text: &str| text.replace(&self.service.url(), "https://service");
        let _infallible = writeln!(
            self.told,
            "=== {night}: exit {code}\n--- stdout\n{}--- stderr\n{}--- day,attempts,spent,at risk,unknown,kept,kept s,usd per kept s\n{}\n",
            said(&ended.stdout),
            said(&ended.stderr),
            today.unwrap_or("nothing")
        );
    }
}

#[test]
fn week_of_nights_is_quiet_unless_a_run_fails() {
    let mut week = Week::new();
    let ended = week.run(23, &[]).ends();
    week.note("Monday, and a face waits for its review", 23, &ended);

    week.feel(Mood::Slow);
    let child = week.run(24, &[]).starts();
    wait_until("one is submitted and polled", || {
        week.service.asked().iter().any(|asked| asked.method == "GET" && asked.path.ends_with("/t2"))
    });
    kill(&child, "-KILL");
    let ended = Ended::wait_for(child);
    week.note("Tuesday, killed", 24, &ended);

    week.here.write("daily.yaml", manifest("approved", "6.00"));
    let asked = week.service.asked().len();
    let first = week.run(25, &[]).starts();
    wait_until("the first one asks about Tuesday's", || week.service.asked().len() > asked);
    let second = week.run(25, &["--lock-wait", "100ms"]).ends();
    week.note("Wednesday, a second run while the first is at it", 25, &second);
    week.feel(Mood::Well);
    let first = Ended::wait_for(first);
    week.note("Wednesday, the first one, which collects Tuesday's, and the face is approved", 25, &first);
    assert!(week.here.path("shotlist-out/daily/2026-11-24/sky.mp4").exists(), "what was paid for on Tuesday is here");

    week.here.write("daily.yaml", manifest("approved", "1.00"));
    let ended = week.run(26, &[]).ends();
    week.note("Thursday, and somebody lowered the limit of the day", 26, &ended);
    week.here.write("daily.yaml", manifest("approved", "6.00"));

    week.feel(Mood::Slow);
    let ended = week.run(27, &[]).ends_by_timeout(|| {
        !week.here.ledger_if_any("SELECT state FROM attempt WHERE state = 'in_progress'").is_empty()
    });
    week.note("Friday, ended by `timeout`", 27, &ended);

    let posts = week.service.posts().len();
    let advice =
        ended.stdout.split('`').nth(1).and_then(|command| command.strip_prefix("shotlist ")).expect("a command");
    let words: Vec<&str> = advice.split(' ').collect();
    let shown = week.at(28, "05:00:00", &words).ends_with(0);
    week.note(&format!("What Friday's mail said to type, on Saturday: {advice}"), 28, &shown);
    assert_eq!(week.service.posts().len(), posts);

    week.feel(Mood::Broken);
    let saturday = week.run(28, &[]).ends();
    week.note("Saturday, the service is broken, and what Friday left is collected", 28, &saturday);
    week.feel(Mood::Well);
    assert!(week.here.path("shotlist-out/daily/2026-11-27/sky.mp4").exists(), "what was paid for on Friday is here");

    *week.key.lock().expect("no panic") = "new";
    let ended = week.run(29, &[]).ends();
    week.note("Sunday, and the key was rotated", 29, &ended);

    // The command of Saturday's mail, on Sunday: it is about Saturday's batch, and buys nothing.
    week.here.write("key", "new\n");
    let posts = week.service.posts().len();
    let advice: Vec<&str> = saturday.stderr.split('`').filter(|words| words.contains(" --never-created ")).collect();
    assert_eq!(advice.len(), 3, "{}", saturday.stderr);
    for command in advice {
        let words: Vec<&str> = command.strip_prefix("shotlist ").expect("a command").split(' ').collect();
        let settled = week.at(29, "09:00:00", &words).ends_with(0);
        week.note(&format!("Sunday morning: {command}"), 29, &settled);
    }
    assert_eq!(week.service.posts().len(), posts);
    let ended = week.run(29, &[]).ends();
    week.note("Sunday, with the new key", 29, &ended);
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"process \d+, since [0-9-]+ [0-9:]+", "process N, since T");
    // The account has the URL of this test's service.
    settings.add_filter(r"(digest:|--approved) [0-9a-f]+", "$1 DIGEST");
    settings.bind(|| insta::assert_snapshot!(week.told));
}
