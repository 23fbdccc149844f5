//! Places at which a test can stop the process and kill it. Compiled out of release builds.
//!
//! A test names a place and a number in the environment, `SHOTLIST_HALT_AT=before-commit:7`, and a file in
//! `SHOTLIST_HALT_FILE`. The seventh time that the process comes by, it writes the file and stands still, so that the
//! test can send SIGKILL and know that it hit exactly there.

/// Stands still here if a test said so.
#[cfg(debug_assertions)]
pub fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static HALT: OnceLock<Option<(String, usize, String)>> = OnceLock::new();
    static PASSED: AtomicUsize = AtomicUsize::new(0);

    let halt = HALT.get_or_init(|| {
        let at = std::env::var("SHOTLIST_HALT_AT").ok()?;
        let (place, number) = at.split_once(':')?;
        Some((place.to_owned(), number.parse().ok()?, std::env::var("SHOTLIST_HALT_FILE").ok()?))
    });
    if let Some((place, number, file)) = halt
        && place == name
        && PASSED.fetch_add(1, Ordering::SeqCst) + 1 == *number
    {
        std::fs::write(file, "halted").expect("a test gave a file that can be written");
        loop {
            std::thread::park();
        }
    }
}

/// Nothing, in a release build.
#[cfg(not(debug_assertions))]
pub fn point(_: &str) {}
