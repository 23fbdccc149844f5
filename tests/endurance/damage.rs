//! A damaged ledger is refused: with any damage to its bytes, nothing is bought by it.

use std::fs;
use std::path::Path;

use shotlist::domain::{Attempt, BatchKey, History, Usd};
use shotlist::ledger::Ledger;

use super::random::Rng;
use crate::support::{Answer, Service, Workspace, json as answer, open_ledger};

const LEDGER: &str = ".shotlist/ledger.db";
const PAGE: usize = 4096;

/// Two batches with jobs in several states, labels, and a limit, in one file without a log.
fn ledger() -> (Service, Workspace) {
    let jobs =
        (0..24).map(|id| format!("  - {{ id: j{id}, prompt: number {id}, labels: {{ client: c{} }} }}\n", id % 3));
    let manifest = format!(
        "version: 1\nbudget: {{ day: 500 }}\ndefaults: {{ model: alpha-2 }}\njobs:\n{}",
        jobs.collect::<String>()
    );
    let service = Service::scripted(|asked| match asked.method.as_str() {
        "POST" if asked.submits("number 7") => answer(400, &serde_json::json!({ "error": { "message": "no" } })),
        "POST" if asked.submits("number 8") => answer(500, &serde_json::json!({})),
        "GET" if asked.path.ends_with("t9") => {
            answer(200, &serde_json::json!({ "status": "failed", "error": { "message": "no" } }))
        }
        _ => Answer::Well,
    });
    let here = Workspace::with_manifest(&manifest);
    here.run(&service, &["--exclude", "j20", "--no-download"]).ends();
    here.run(&service, &["--select", "j{0,1,2,3,4,5}", "--batch", "b", "--no-download"]).ends();
    here.shotlist(&["limit", "set", "--month", "400"]).ends_with(0);
    let log = open_ledger(&here.path(LEDGER));
    log.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).expect("one file");
    (service, here)
}

fn key(batch: &str) -> BatchKey {
    BatchKey { name: "m".into(), batch: batch.into() }
}

/// The facts that a run and `status` read.
type Believed = (Vec<Attempt>, Vec<Attempt>, Usd);

async fn believed(path: &Path) -> Option<Believed> {
    let ledger = Ledger::in_file(path);
    let attempts = |history: History| history.attempts().cloned().collect();
    let (one, two) = (ledger.history(&key("")).await.ok()?, ledger.history(&key("b")).await.ok()?);
    ledger.controls().await.ok()?;
    Some((attempts(one), attempts(two), ledger.used_since(jiff::Timestamp::MIN, None).await.ok()?))
}

/// One damage: a bit, a byte, a page that is zeroed, exchanged, or copied, or a file that is cut.
fn damage(bytes: &mut Vec<u8>, rng: &mut Rng) -> String {
    let (at, pages) = (rng.below(bytes.len()), bytes.len() / PAGE);
    let (one, other) = (rng.below(pages) * PAGE, rng.below(pages) * PAGE);
    match rng.below(10) {
        0..4 => {
            let bit = rng.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at}")
        }
        4..6 => {
            bytes[at] = u8::try_from(rng.below(256)).expect("a byte");
            format!("byte {at}")
        }
        6 => {
            let end = rng.below(bytes.len());
            bytes.truncate(end);
            format!("cut at {end}")
        }
        7 => {
            bytes[one..one + PAGE].fill(0);
            format!("zeroed page at {one}")
        }
        8 => {
            let page = bytes[one..one + PAGE].to_vec();
            bytes.copy_within(other..other + PAGE, one);
            bytes[other..other + PAGE].copy_from_slice(&page);
            format!("exchanged pages at {one} and {other}")
        }
        _ => {
            bytes.copy_within(other..other + PAGE, one);
            format!("page at {other} copied over {one}")
        }
    }
}

#[tokio::test]
async fn damaged_ledger_is_refused_or_reads_as_it_was() {
    let (_service, here) = ledger();
    let sound = fs::read(here.path(LEDGER)).expect("the ledger");
    let (copy, mut rng) = (here.path("copy.db"), Rng(17));
    fs::write(&copy, &sound).expect("a copy");
    let expected = believed(&copy).await.expect("a sound ledger");
    assert_eq!((expected.0.len(), expected.1.len()), (23, 6));
    let (mut refused, mut spared) = (0, 0);
    for number in 0..1000 {
        let mut bytes = sound.clone();
        let what = damage(&mut bytes, &mut rng);
        fs::write(&copy, &bytes).expect("a copy");
        match believed(&copy).await {
            None => refused += 1,
            Some(found) => {
                assert!(found == expected, "{number}: {what} is believed");
                spared += 1;
            }
        }
    }
    // Much of a file is free space.
    assert!(refused > 300 && spared > 100, "{refused} refused, {spared} spared");
}

#[test]
fn nothing_is_bought_on_the_word_of_a_damaged_ledger() {
    let (service, here) = ledger();
    let sound = fs::read(here.path(LEDGER)).expect("the ledger");
    let (before, mut rng) = (service.posts().len(), Rng(4));
    let status = |here: &Workspace| here.shotlist(&["status", "m.yaml"]).ends();
    let (expected, job) = (status(&here).stdout, ["--exclude", "j20", "--no-download"]);
    let mut refused = 0;
    for number in 0..60 {
        let mut bytes = sound.clone();
        let what = damage(&mut bytes, &mut rng);
        fs::write(here.path(LEDGER), &bytes).expect("damaged");
        for name in ["-wal", "-shm"] {
            let _absent = fs::remove_file(here.path(&format!("{LEDGER}{name}")));
        }
        let told = status(&here);
        assert!(told.code != Some(0) || told.stdout == expected, "{number}: {what}: {}", told.stdout);
        assert!(!told.stderr.contains("panicked"), "{number}: {what}: {}", told.stderr);
        let ended = here.run(&service, &job).ends();
        // The rejected job is due, and a reason to end with 1 or 7; nothing else is.
        let again: Vec<String> =
            service.posts()[before..].iter().filter(|body| !body.contains("number 7")).cloned().collect();
        assert!(again.is_empty(), "{number}: {what}: {again:?}: {}", ended.stderr);
        refused += usize::from(ended.code == Some(74));
    }
    assert!(refused > 15, "{refused} refused");
}

/// A row that another program edits: of a table with triggers, it can't, and of the attempts, the checksum shows it.
#[test]
fn edited_row_is_refused() {
    let (service, here) = ledger();
    let before = service.posts().len();
    let file = rusqlite::Connection::open(here.path(LEDGER)).expect("the ledger");
    file.execute("UPDATE spent SET micros = 0", []).expect_err("only shotlist keeps the checksums");
    file.execute("UPDATE attempt SET job = 'elsewhere' WHERE job = 'j1'", []).expect("edited");
    drop(file);
    here.run(&service, &["--exclude", "j{7,20}", "--no-download"]).ends_with(74);
    assert_eq!(service.posts().len(), before);
}
