//! Any bytes as a manifest: it is read or refused, within bounds of time and memory, and every diagnostic can be shown.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shotlist::catalog::Catalog;
use shotlist::manifest::{Options, Severity, load};

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.yaml");
    std::fs::write(&path, bytes).expect("a file");
    let now = jiff::Timestamp::UNIX_EPOCH;
    let loaded =
        load(&Options { path: &path, set: &[], batch: None, now, root: None, secret: None }, Catalog::embedded());
    let _shown = shotlist::ui::diagnostics_json(&loaded.diagnostics, &loaded.sources);
    if loaded.diagnostics.iter().all(|diagnostic| diagnostic.severity == Severity::Warning) {
        assert!(loaded.manifest.is_some());
    }
});
