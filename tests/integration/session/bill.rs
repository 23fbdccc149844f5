//! Reconciliation of the service's bill with the ledger: matches, differences, settlements, and hostile bills.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;
use shotlist::bill::{Bill, Line, Period, compare, depends_on};
use shotlist::domain::{Account, Attempt, AttemptState, BatchKey, Usd};

use crate::support::{Answer, Ended, LEFT_AFTER, Service, Workspace, json as answer, open_ledger};

const JOBS: &str = "version: 1
defaults: { model: beta-2.0-lite }
jobs:
  - { id: done, model: alpha-2, prompt: done }
  - { id: paid, prompt: paid }
  - { id: free, prompt: free }
  - { id: open, prompt: open }
  - { id: doubt, model: alpha-2, prompt: doubt }
";

/// One job completed, two failed of a family that documents no charge, one at the service, one in doubt.
fn bought() -> (Service, Workspace) {
    let service = Service::scripted(|asked| {
        let name = ["paid", "free", "open", "doubt"]
            .into_iter()
            .find(|name| asked.body.contains(name) || asked.path.ends_with(name));
        match (asked.method.as_str(), name) {
            ("POST", Some("doubt")) => Answer::Hangup,
            ("POST", Some(name)) => answer(200, &json!({ "id": name })),
            ("GET", Some("open")) => answer(200, &json!({ "id": "open", "status": "queued" })),
            ("GET", Some(name)) => {
                answer(200, &json!({ "id": name, "status": "failed", "error": { "message": "no" } }))
            }
            _ => Answer::Well,
        }
    });
    let here = Workspace::with_manifest(JOBS);
    here.run(&service, &["--deadline", LEFT_AFTER]).ends_with(7);
    (service, here)
}

fn reconcile(here: &Workspace, bill: &str, arguments: &[&str]) -> Ended {
    here.write("bill.csv", bill);
    let usual = ["reconcile", "bill.csv", "m.yaml", "--task-column", "task", "--usd-column", "usd"];
    here.shotlist(&[&usual, arguments].concat()).ends()
}

const DAYS_AGO: SignedDuration = SignedDuration::from_hours(72);

/// Dates all attempts back by days, because a bill has no recent charges.
fn long_ago(here: &Workspace) {
    let hours = DAYS_AGO.as_hours();
    let ago = |field: &str| format!("strftime('%Y-%m-%dT%H:%M:%fZ', record ->> '$.{field}', '-{hours} hours')");
    let (intended, ended) = (ago("intended_at"), ago("ended_at"));
    let sql = format!(
        "UPDATE attempt SET record = json_set(record, '$.intended_at', {intended}, '$.ended_at', {ended});
         UPDATE attempt SET intended_us = CAST(round(unixepoch(record ->> '$.intended_at', 'subsec') * 1000) AS INTEGER) * 1000;
         UPDATE spent SET quarter = quarter - 4 * {hours}"
    );
    open_ledger(&here.path(".shotlist/ledger.db")).execute_batch(&sql).expect("moved");
}

/// A text with `DATE` and `TIME` in place of its dates and times.
fn undated(text: &str) -> String {
    let words = text.split(' ').map(|word| match word {
        date if date.parse::<jiff::civil::Date>().is_ok() => "DATE",
        time if time.contains(':') && time.parse::<jiff::civil::Time>().is_ok() => "TIME",
        other => other,
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Dates a number of days before and after today.
fn days(around: i64) -> [String; 4] {
    let (today, span) = (jiff::Zoned::now().date(), jiff::Span::new().days(around));
    ["--since".into(), (today - span).to_string(), "--until".into(), (today + span).to_string()]
}

#[test]
fn bill_differences_are_listed_and_applied_on_demand() {
    let (_, here) = bought();
    let bill = "task,usd\nt0,0.90\npaid,$3.75\nfree,0\nstrange,0.90\nother,5.00\n,10.55\n";
    let before = here.ledger("SELECT * FROM attempt");
    let ended = reconcile(&here, bill, &[]);
    assert_eq!(ended.code, Some(1));
    insta::assert_snapshot!(undated(&ended.stdout), @"
    only on the bill: 2
      line 5: strange $0.90
      line 6: other $5.00
    in doubt: 1 (look up which line is whose, by its prompt at the service)
      doubt of m, DATE TIME UTC: $0.90 at risk
        line 5 fits: shotlist resolve m.yaml doubt --task strange --batch ''
    settled by the bill: charged: 1
      paid of m (paid) $3.75
    settled by the bill: not charged: 1
      free of m (free) $3.75
    bill: $10.55 in 5 lines
    agreed: $0.90, settled: $3.75 charged and $3.75 not, only on the bill: $5.90, only in the ledger: $0.00
    bill and ledger differ
    ");
    let not_applied = reconcile(&here, bill, &["--log-format", "json"]).text_of("bill-not-applied");
    insta::assert_snapshot!(not_applied, @"nothing was recorded; `--apply` records what the bill settles");
    assert_eq!(here.ledger("SELECT * FROM attempt"), before);

    let spent = |here: &Workspace| here.shotlist(&["spend"]).ends_with(0).line("spent: ");
    insta::assert_snapshot!(spent(&here), @"spent: $0.90, at risk: $0.90, unknown: $11.25");
    let applied = reconcile(&here, bill, &["--apply", "--log-format", "json"]);
    insta::with_settings!({ filters => vec![(r"sha256 \w+", "sha256 DIGEST")] }, {
        insta::assert_snapshot!(applied.text_of("bill-applied"), @"attempts settled by bill.csv (sha256 DIGEST): 2");
    });
    assert_eq!(applied.code, Some(1), "{}", applied.stderr);
    insta::assert_snapshot!(spent(&here), @"spent: $4.65, at risk: $0.90, unknown: $3.75");
    let source =
        here.ledger("SELECT job, is_charged, substr(billed_source, 1, 17) FROM attempt WHERE is_charged IS NOT NULL");
    assert_eq!(source, [["paid", "1", "bill.csv (sha256 "], ["free", "0", "bill.csv (sha256 "]]);
    here.shotlist(&["ledger", "check"]).ends_with(0);
    // A copy counts a charge that the bill found free as zero, like its source.
    here.shotlist(&["ledger", "backup", "bak.db"]).ends_with(0);
    here.shotlist(&["ledger", "copy", "bak.db", "copy.db"]).ends_with(0);
    let sums = |ledger: &str| {
        open_ledger(&here.path(ledger))
            .query_row("SELECT sum(micros) FROM spent WHERE label = ''", [], |row| row.get::<_, i64>(0))
    };
    assert_eq!(sums("copy.db"), sums("bak.db"));
    here.shotlist(&["ledger", "check", "--ledger", "copy.db"]).ends_with(0);
    let report = here.shotlist(&["status", "m.yaml", "--format", "json"]).ends_with(0).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let charges: Vec<&str> = (0..5).map(|at| report["jobs"][at]["charge"].as_str().expect("a charge")).collect();
    assert_eq!(charges, ["charged", "charged", "none", "unknown", "unknown"]);
    assert_eq!(report["jobs"][2]["cost_usd"], "0.00");
    // The second reconciliation changes nothing.
    reconcile(&here, bill, &["--apply", "--log-format", "json"]).hides("bill-applied");
    // Neither a charged nor a free job is bought again without a request.
    assert_eq!(here.planned(&[]).0, 0);
}

#[test]
fn printed_command_settles_a_doubt_from_the_bill() {
    let (service, here) = bought();
    let (wide, near) = (days(8), days(3));
    long_ago(&here);
    let [days, near] = [&wide, &near].map(|days| days.iter().map(String::as_str).collect::<Vec<_>>());
    let now = Timestamp::now() - DAYS_AGO;
    let far = now - SignedDuration::from_hours(200);
    let bill = format!("task;usd;at\nt0;0.90;\npaid;3.75;\ntook;0.90;{now}\nlong-ago;0.90;{far}\n");
    let ended = reconcile(&here, &bill, &[&["--time-column", "at"], days.as_slice()].concat());
    let offer = "shotlist resolve m.yaml doubt --task took --batch ''";
    // With an unexplained line, a missing task is no proof of a free one.
    insta::assert_snapshot!(undated(&ended.stdout), @"
    only on the bill: 2
      line 4: took $0.90
      line 5: long-ago $0.90
    unknown charge, and not on the bill (settled only inside `--since` and `--until`, if all lines match): 1
      free of m (free) $3.75
    in doubt: 1 (look up which line is whose, by its prompt at the service)
      doubt of m, DATE TIME UTC: $0.90 at risk
        line 4 fits: shotlist resolve m.yaml doubt --task took --batch ''
    settled by the bill: charged: 1
      paid of m (paid) $3.75
    bill: $6.45 in 4 lines
    agreed: $0.90, settled: $3.75 charged and $0.00 not, only on the bill: $1.80, only in the ledger: $0.00
    not settled: $3.75
    bill and ledger differ
    ");
    let words = shlex::split(offer).expect("words");
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let settled = here.shotlist(&words).with_service(&service.url()).ends();
    assert_eq!(settled.code, Some(0), "{}", settled.stderr);
    // Everything is explained now, and agrees once it is written.
    let whole = "task,usd\nt0,0.90\npaid,3.75\ntook,0.90\nTotal of November,\n";
    assert_eq!(reconcile(&here, whole, &days).code, Some(1), "a line that says no amount");
    let whole = "task,usd\nt0,0.90\npaid,3.75\ntook,0.90\n,5.55\n";
    // What is missing at the edge may be on the next bill.
    let edge = reconcile(&here, whole, &near).lacks(&["settled by the bill: not charged"]);
    assert_eq!(edge.code, Some(1));
    for arguments in [days.as_slice(), &[days.as_slice(), &["--apply"]].concat(), &days] {
        let ended = reconcile(&here, whole, arguments);
        assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
        assert!(ended.stdout.ends_with("bill and ledger agree\n"), "{}", ended.stdout);
    }
    // A later charge replaces the result that there was none.
    let late = "task,usd\nt0,0.90\npaid,3.75\ntook,0.90\nfree,3.75\n";
    assert_eq!(reconcile(&here, late, &["--apply"]).code, Some(0));
    insta::assert_snapshot!(here.shotlist(&["spend"]).ends_with(0).line("spent: "), @"spent: $9.30, at risk: $0.00, unknown: $3.75");
    here.shotlist(&["ledger", "check"]).ends_with(0);
    // Without dates, a task missing in the bill is no proof of a free one.
    let fewer = reconcile(&here, "task,usd\nt0,0.90\npaid,3.75\n", &[]);
    assert_eq!(fewer.code, Some(1));
    fewer.line("only in the ledger: 2");
}

#[test]
fn hostile_bill_settles_nothing_else() {
    let (_, here) = bought();
    for (bill, told) in [
        ("task,usd\npaid,3.75\npaid,3.75\n", "paid of m (paid): billed $7.50, charged 2 times, ledger $3.75"),
        ("task,usd\npaid,3.00\n", "paid of m (paid): billed $3.00, ledger $3.75"),
        ("task,usd\npaid,-3.75\n", "paid of m (paid): billed $0.00, ledger $3.75"),
        ("task,usd\npaid,€3.75\n", "line 2: `€3.75`"),
        ("task,usd,x\npaid,3.75,1\nfree,0", "line 3: it has 2 of 3 cells: is the file whole?"),
        ("task,usd\n\"paid,3.75\nfree,0\n", "is the file whole?"),
        ("task,usd\nt0,-0.90\n", "done of m (t0): billed $0.00"),
    ] {
        let ended = reconcile(&here, bill, &["--apply"]);
        assert!(matches!(ended.code, Some(1 | 2)), "{bill}: {}", ended.stderr);
        assert!(ended.stdout.contains(told), "{bill}: {}", ended.stdout);
        assert!(here.ledger("SELECT job FROM attempt WHERE is_charged IS NOT NULL").is_empty(), "{bill}");
    }
    // A sum before further task lines is a fee, and no total.
    let fee = reconcile(&here, "task,usd\nt0,0.90\n,0.90\npaid,3.75\n,4.65\n", &[]);
    assert_eq!(fee.code, Some(1));
    insta::assert_snapshot!(undated(&fee.stdout), @"
    lines without a task: 1
      line 3: $0.90
    unknown charge, and not on the bill (settled only inside `--since` and `--until`, if all lines match): 1
      free of m (free) $3.75
    in doubt: 1 (look up which line is whose, by its prompt at the service)
      doubt of m, DATE TIME UTC: $0.90 at risk
    settled by the bill: charged: 1
      paid of m (paid) $3.75
    bill: $4.65 in 2 lines
    agreed: $0.90, settled: $3.75 charged and $0.00 not, only on the bill: $0.00, only in the ledger: $0.00
    not settled: $3.75
    bill and ledger differ
    ");
    // A refunded charge counts as none.
    let refunded = reconcile(&here, "task,usd\npaid,3.75\npaid,-3.75\n", &["--apply"]);
    insta::assert_snapshot!(undated(&refunded.stdout), @"
    only in the ledger: 1
      done of m (t0) $0.90
    unknown charge, and not on the bill (settled only inside `--since` and `--until`, if all lines match): 1
      free of m (free) $3.75
    in doubt: 1 (look up which line is whose, by its prompt at the service)
      doubt of m, DATE TIME UTC: $0.90 at risk
    settled by the bill: not charged: 1
      paid of m (paid) $3.75
    bill: $3.75 in 2 lines, $3.75 of it refunded
    agreed: $0.00, settled: $0.00 charged and $3.75 not, only on the bill: $0.00, only in the ledger: $0.90
    not settled: $3.75
    bill and ledger differ
    ");
    for (arguments, told) in [
        (
            &["reconcile", "bill.csv", "m.yaml", "--task-column", "id", "--usd-column", "usd"][..],
            "error[bill-invalid]: ",
        ),
        (&["reconcile", "none.csv", "m.yaml", "--task-column", "id", "--usd-column", "usd"], "error[bill-invalid]: "),
        (&["reconcile", "bill.csv", "m.yaml", "--task-column", "task"], "--usd-column"),
        (
            &[
                "reconcile",
                "bill.csv",
                "m.yaml",
                "--task-column",
                "task",
                "--usd-column",
                "usd",
                "--since",
                "2026-11-01",
            ],
            "--until",
        ),
        (
            &["reconcile", "bill.csv", "--ledger", "none.db", "--task-column", "task", "--usd-column", "usd"],
            "error[ledger-missing]: ",
        ),
    ] {
        let refused = here.shotlist(arguments).ends_with(2).stderr;
        assert!(refused.contains(told), "{refused}");
    }
}

/// A run is at the batch: the bill waits, and nothing of it is lost.
#[test]
fn reconcile_skips_a_locked_batch() {
    let (service, here) = bought();
    let (holding, release) = Service::holding("new");
    here.write("m.yaml", format!("{JOBS}  - {{ id: new, model: alpha-2, prompt: new }}\n"));
    let child = here.run(&holding, &["--same-account", "--select", "new"]).starts();
    crate::support::wait_until("it is sending", || !holding.posts().is_empty());
    let busy = reconcile(&here, "task,usd\npaid,3.75\n", &["--apply"]);
    assert_eq!(busy.code, Some(75), "{}", busy.stderr);
    release.store(true, std::sync::atomic::Ordering::SeqCst);
    drop(Ended::wait_for(child));
    reconcile(&here, "task,usd\npaid,3.75\n", &["--apply", "--log-format", "json"]).shows("bill-applied");
    drop(service);
}

/// Tasks of two keys in one ledger: the bill of one key leaves those of the other.
#[test]
fn bill_applies_to_its_accounts() {
    let (service, here) = bought();
    let other = "version: 1\nname: other\njobs: [{ id: x, model: beta-2.0-lite, prompt: else }]\n";
    here.write("m.yaml", other);
    here.run(&service, &[]).env("SHOTLIST_API_KEY", "another").ends_with(0);
    let days = days(4);
    let days: Vec<&str> = days.iter().map(String::as_str).collect();
    let ended = reconcile(&here, "task,usd\nt0,0.90\n", &[days.as_slice(), &["--apply"]].concat());
    ended.lacks(&["only in the ledger: 1\n"]).line("tasks of other accounts, left out: 1");
}

/// Bills are read to find wrong prices. So a probable charge comes without a suggestion to buy again.
#[test]
fn doubt_near_another_charge_is_not_called_never_created() {
    let (_, here) = bought();
    let days = days(4);
    let now = Timestamp::now();
    let bill = format!("task,usd,at\nt0,0.90,\npaid,3.75,\nodd,0.95,{now}\n");
    let arguments: Vec<&str> = days.iter().map(String::as_str).chain(["--time-column", "at"]).collect();
    let ended = reconcile(&here, &bill, &arguments);
    let offer = ended.lacks(&["--never-created"]).line("--task odd");
    insta::assert_snapshot!(offer, @"line 4 of $0.95: shotlist resolve m.yaml doubt --task odd --batch ''");
    let without = reconcile(&here, "task,usd\nt0,0.90\npaid,3.75\n", &arguments[..4]);
    assert!(
        without.stdout.contains(
            "no line on the bill; if none will follow: shotlist resolve m.yaml doubt --never-created --batch ''"
        ),
        "{}",
        without.stdout
    );
}

/// The attempt of a submission a number of days ago, at one of two accounts.
fn submission(number: usize, state: AttemptState, days_ago: i64, account: u8, is_declared: bool) -> Attempt {
    let at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * (100 - days_ago));
    let has_task = state.is_active() || matches!(state, AttemptState::Completed | AttemptState::Failed);
    let attempt = json!({
        "id": number, "normalized": "n", "account": Account { service: "s".into(), key: account.to_string().into() },
        "state": state, "task": has_task.then(|| json!({ "id": format!("t{number}"), "alias": null })), "video_url": null, "error": null,
        "polls": 0, "intended_at": at, "answered_at": null, "ended_at": null, "file": null, "fetched_at": null,
        "purchase": {
            "job": format!("j{number}"), "request": { "body": "{}", "fingerprint": "f" }, "model": "alpha-2", "price": "0.90",
            "charging": "undocumented", "typical_s": [60, 180], "labels": {}, "output": null,
        },
        "particulars": { "declared": is_declared.then(|| json!({ "what": "never_created", "at": at })) },
    });
    serde_json::from_value(attempt).expect("an attempt")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    /// A reconciliation reads only the necessary attempts.
    #[test]
    fn comparison_needs_no_other_attempts(
        lives in prop::collection::vec((0..8usize, 0..90i64, 0..2u8, any::<bool>()), 1..12),
        lines in prop::collection::vec((0..16usize, 0..2i64), 0..6),
        (from, days, is_said) in (0..90i64, 1..90i64, any::<bool>()),
    ) {
        let at = |day| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * day);
        let period = Period { from: at(from), to: at(from + days), is_said };
        let batch = BatchKey { name: "m".into(), batch: String::new() };
        let submitted = lives.iter().enumerate().map(|(number, (state, days_ago, account, is_declared))| {
            let state = AttemptState::ALL[*state];
            (batch.clone(), submission(number, state, *days_ago, *account, *is_declared && state == AttemptState::Void))
        });
        let all: Vec<_> = submitted.collect();
        let line = |(number, (task, cents)): (usize, &(usize, i64))| {
            let usd = Usd::from_micros(900_000 * cents);
            Line { number: number as u64, task: format!("t{task}"), usd, is_credit: false, at: None }
        };
        let bill = Bill { lines: lines.iter().enumerate().map(line).collect(), ..Bill::default() };
        let is_needed = depends_on(&bill, period);
        let mut accounts = std::collections::HashSet::new();
        let is_first = |attempt: &Attempt| accounts.insert(attempt.account.clone());
        let kept: Vec<bool> = all.iter().map(|(_, attempt)| attempt).map(is_first).collect();
        let needed: Vec<_> =
            all.iter().zip(kept).filter(|((_, attempt), kept)| *kept || is_needed(attempt)).map(|(one, _)| one.clone()).collect();
        let [of_all, of_needed] = [&all, &needed].map(|given| format!("{:?}", compare(&bill, given, period)));
        prop_assert_eq!(of_all, of_needed);
    }
}
