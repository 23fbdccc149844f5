//! Any bytes as the response to a submission. Its meaning for the money is written into a real ledger, and read back.
//! The first byte chooses the status, the second whether there is a `Retry-After`; the rest is the body.

#![no_main]

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;
use shotlist::catalog::Catalog;
use shotlist::domain::{Account, AttemptState, BatchKey, TerminalStates};
use shotlist::ledger::{Event, Intent, Ledger, LedgerError};
use shotlist::manifest::{Options, load};
use shotlist::service::{Answer, Submission, TryAgain, submission};
use tokio::runtime::Runtime;

const STATUS: [u16; 12] = [200, 201, 202, 204, 302, 400, 401, 408, 422, 429, 500, 503];

static LEDGER: LazyLock<(tempfile::TempDir, Ledger, Runtime)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let ledger = Ledger::in_file(folder.path().join("ledger.db"));
    (folder, ledger, Runtime::new().expect("a runtime"))
});
static INTENT: LazyLock<Intent> = LazyLock::new(|| {
    let path = LEDGER.0.path().join("m.yaml");
    std::fs::write(&path, "version: 1\njobs: [{ id: a, model: alpha-2, prompt: A crane }]\n").expect("a manifest");
    let manifest = load(&Options::new(&path), Catalog::embedded()).sound().expect("a sound manifest");
    Intent::new(&manifest.jobs[0], Account { service: "s".into(), key: "k".into() })
});
static NEXT: AtomicUsize = AtomicUsize::new(0);

fuzz_target!(|bytes: &[u8]| {
    let [status, wait, body @ ..] = bytes else { return };
    let answer = Answer {
        status: STATUS[usize::from(*status) % STATUS.len()],
        retry_after: (wait % 2 == 1).then_some("1"),
        is_overloaded: *wait == 3,
        cost: None,
        location: None,
        body,
        masked: body,
        words: &TerminalStates::default(),
    };
    let (_folder, ledger, runtime) = &*LEDGER;
    // One batch for each response keeps reads of the ledger quick.
    let batch = BatchKey { name: "fuzz".into(), batch: NEXT.fetch_add(1, Ordering::Relaxed).to_string() };
    let held = runtime.block_on(ledger.lock(&batch)).expect("the batch");
    let attempt = runtime.block_on(held.intend(INTENT.clone())).expect("an intent");
    let (event, expected) = match submission(&answer, false, jiff::Timestamp::UNIX_EPOCH) {
        Ok(Submission::Accepted(task, _)) => (Event::Accepted(task), AttemptState::Queued),
        Ok(Submission::Rejected(error) | Submission::Unpaid(error) | Submission::WrongEndpoint(error)) => {
            (Event::Refused(error), AttemptState::Rejected)
        }
        Ok(Submission::InDoubt(error) | Submission::Page(error)) => (Event::Doubted(error), AttemptState::InDoubt),
        Err(TryAgain::ServerError(..)) => (Event::ServerError, AttemptState::Void),
        Ok(Submission::Untrusted(_) | Submission::Moved(_) | Submission::KeyRefused(_) | Submission::Forbidden(_))
        | Err(TryAgain::NotSent(_) | TryAgain::Wait(..)) => (Event::Withdrawn, AttemptState::Void),
    };
    match runtime.block_on(held.record(attempt, event)) {
        // An earlier input named the same task.
        Err(LedgerError::TaskTaken { .. }) => return,
        recorded => recorded.expect("recorded"),
    }
    let history = runtime.block_on(ledger.history(&batch)).expect("it can be read");
    let states: Vec<AttemptState> = history.attempts().map(|attempt| attempt.state).collect();
    assert_eq!(states, [expected]);
});
