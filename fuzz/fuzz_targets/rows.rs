//! Any bytes as the CSV of a job: each row becomes a job or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use shotlist::catalog::Catalog;
use shotlist::manifest::{Options, Severity, load};

const MANIFEST: &str = "version: 1\njobs:\n  - { id: \"{{ row.id }}\", for_each: rows.csv, model: alpha-2, prompt: \"{{ row.a }} {{ row['b c'] }}\", tags: \"{{ row.t }}\" }\n";

fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("m.yaml");
    std::fs::write(&path, MANIFEST).expect("a file");
    // Rows below a usual header, or bytes with any header.
    let csv = if bytes.first() == Some(&0) { bytes.to_vec() } else { [b"id,a,b c,t\n", bytes].concat() };
    std::fs::write(folder.path().join("rows.csv"), csv).expect("a file");
    let now = jiff::Timestamp::UNIX_EPOCH;
    let loaded =
        load(&Options { path: &path, set: &[], batch: None, now, root: None, secret: None }, Catalog::embedded());
    let _shown = shotlist::ui::diagnostics_json(&loaded.diagnostics, &loaded.sources);
    let has_error = loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert!(has_error || loaded.manifest.is_some_and(|manifest| !manifest.jobs.is_empty()));
});
