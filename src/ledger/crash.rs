//! Places at which a test can stop the process and kill it. Compiled out of release builds.
//!
//! A test names places and numbers in the environment, `SHOTLIST_HALT_AT=after-commit:6,before-commit:7`, and a file in
//! `SHOTLIST_HALT_FILE`. The sixth time that the process comes by the first place, it writes the file and halts
//! until the file is gone. So the test can look at the disk and let the process go on, or send SIGKILL and know that
//! it hit exactly there.

/// Stands still here if a test said so.
#[cfg(debug_assertions)]
pub(in crate::ledger) fn point(place: &str) {
    use std::collections::HashMap;
    use std::sync::LazyLock;

    use parking_lot::Mutex;

    static PASSED: LazyLock<Mutex<HashMap<String, usize>>> = LazyLock::new(Mutex::default);
    let (Ok(halts), Ok(file)) = (std::env::var("SHOTLIST_HALT_AT"), std::env::var("SHOTLIST_HALT_FILE")) else {
        return;
    };
    let number = {
        let mut passed = PASSED.lock();
        let number = passed.entry(place.to_owned()).or_default();
        *number += 1;
        *number
    };
    if halts.split(',').any(|halt| halt == format!("{place}:{number}")) {
        std::fs::write(&file, "halted").expect("a test gave a file that can be written");
        while std::path::Path::new(&file).exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// Does nothing in a release build.
#[cfg(not(debug_assertions))]
pub(in crate::ledger) fn point(_: &str) {}
