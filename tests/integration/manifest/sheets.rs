//! Sheets of people and their programs, from the directory `tests/sheets`: the cells of each, and the purchases.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use shotlist::catalog::Catalog;
use shotlist::manifest::draft::{Draft, draft};
use shotlist::manifest::{self, Options, Severity};

use crate::support::Workspace;

fn sheets() -> Vec<PathBuf> {
    let kept = || Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sheets");
    let directory = std::env::var_os("SHOTLIST_TEST_SHEETS").map_or_else(kept, PathBuf::from);
    let entries = std::fs::read_dir(directory).expect("the directory").map(|entry| entry.expect("an entry").path());
    let is_sheet = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|ending| ending != "py");
    let mut sheets: Vec<PathBuf> = entries.filter(is_sheet).collect();
    sheets.sort();
    sheets
}

/// The IDs of a plan's jobs.
fn ids(plan: &Value) -> Vec<&str> {
    plan["jobs"].as_array().expect("jobs").iter().filter_map(|job| job["id"].as_str()).collect()
}

#[test]
fn row_with_skip_in_its_status_is_no_job() {
    let here = Workspace::with_manifest(
        "version: 1\njobs: [{ id: 's-{{ row.sku }}-{{ row_number }}', model: alpha-2, prompt: '{{ row.sku }}', for_each: p.csv }]\n",
    );
    here.write("p.csv", "sku,Status\na,\nb, SKIP \nc,skipped\n");
    assert_eq!(ids(&here.plan(&[])), ["s-a-1", "s-c-3"]);
}

#[test]
fn each_sheet_becomes_its_jobs_or_a_reason() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../sheets/snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let sheets = sheets();
    assert!(sheets.len() >= 40, "{} sheets", sheets.len());
    for sheet in sheets {
        let name = sheet.file_name().and_then(|name| name.to_str()).expect("a name");
        let here = Workspace::new().file(name, std::fs::read(&sheet).expect("a sheet"));
        let draft = here.shotlist(&["init", "m.yaml", "--from", name]).ends();
        let mut text = draft.stderr.clone();
        if let Ok(manifest) = std::fs::read_to_string(here.path("m.yaml")) {
            let model = manifest.lines().find(|line| line.starts_with("  model:")).unwrap_or_default();
            let jobs = manifest.split_once("jobs:\n").map(|(_, jobs)| jobs).unwrap_or_default();
            let plan = here.shotlist(&["run", "m.yaml", "--plan", "-v"]).ends();
            let until_digest = |text: &str| text.split("digest:").next().unwrap_or_default().trim_end().to_owned();
            text += &format!("\n{model}\n{jobs}\n{}\n{}", until_digest(&plan.stdout), until_digest(&plan.stderr));
        }
        settings.bind(|| insta::assert_snapshot!(name, text));
    }
}

/// Hidden rows are jobs with a warning. `hidden` and `exclude` leave rows out, and the others keep their numbers.
#[test]
fn rows_are_left_out_only_on_request() {
    let sheet = |name: &str| std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sheets").join(name));
    for name in ["filtered.xlsx", "filtered.ods"] {
        let here = Workspace::new().file(name, sheet(name).expect("a sheet"));
        let written = |more: &str| {
            here.write("m.yaml", format!(
                "version: 1\njobs: [{{ id: \"{{{{ row.SKU }}}}-{{{{ row_number }}}}\", for_each: {{ file: {name}{more} }}, model: alpha-2, prompt: \"{{{{ row.Prompt }}}}\", shape: \"{{{{ row['Aspect ratio'] }}}}\" }}]\n"
            ));
        };
        let planned = |more: &str| {
            written(more);
            here.shotlist(&["run", "m.yaml", "--plan", "--strict"])
        };
        planned("").ends_with(2).shows("rows-hidden");
        written(", hidden: skip");
        assert_eq!(ids(&here.plan(&["--strict"])), ["MUG-01-1", "VASE-03-3"], "the others keep their numbers");
        written(
            ", hidden: skip, exclude: [{ SKU: mug-01, Aspect ratio: '16:9' }, { SKU: VASE-03, Aspect ratio: '9:16' }]",
        );
        assert_eq!(ids(&here.plan(&["--strict"])), ["VASE-03-3"], "only where all cells agree");
        planned(", hidden: skip, exclude: [{ SKU: MUG-01 }, { SKU: VASE-03 }]").ends_with(2).shows("no-rows");
        planned(", hidden: yes").ends_with(2).shows("wrong-type");
        planned(", header_row: 0").ends_with(2).shows("wrong-type");
        planned(", header_row: 9").ends_with(2).shows("csv-no-header");
    }
}

const SHAPES: [(&str, Option<&str>); 15] = [
    ("16x9", Some("16:9")),
    ("9 by 16", Some("9:16")),
    ("9/16 (Reel)", Some("9:16")),
    ("竖屏", Some("9:16")),
    ("16:9 + 9:16", None),
    ("16:9", Some("16:9")),
    (" 9:16", Some("9:16")),
    ("16:09:00", Some("16:9")),
    ("09:16", Some("9:16")),
    ("16：9", Some("16:9")),
    ("Portrait", Some("9:16")),
    ("landscape", Some("16:9")),
    ("4:3", None),
    ("square", None),
    ("", None),
];
const LENGTHS: [(&str, Option<i64>); 11] = [
    ("5", Some(5)),
    ("8,0", Some(8)),
    ("12.0", Some(12)),
    ("7,5", None),
    ("5s", Some(5)),
    ("8 seconds", Some(8)),
    ("0:05", Some(5)),
    ("00:00:12", Some(12)),
    ("1:60", None),
    ("long", None),
    ("", None),
];
const TAKES: [&str; 5] = ["1", "3", "2,0", "x", ""];

fn any_of<T: Copy + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(values)
}

/// The first bytes of a workbook that is not packed.
const OLE: &[u8] = &[0xd0, 0xcf, 0x11, 0xe0];

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// Damage ends in an error or in a sheet, and never in a panic or a hang.
    #[test]
    fn damaged_workbooks_are_refused_or_read(
        name in any_of(&["merged.xls", "filtered.xls", "binary.xlsb", "merged.ods", "filtered.xlsx"]),
        damage in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..20),
    ) {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sheets").join(name);
        let whole = std::fs::read(kept).expect("a sheet");
        let damaged = |bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            for (at, byte) in &damage {
                *at.get_mut(&mut bytes) = *byte;
            }
            bytes
        };
        let here = Workspace::new();
        // In a packed file, damage would only be found by its check sum.
        let bytes = if whole.starts_with(OLE) { damaged(&whole) } else { repacked(&whole, damaged) };
        here.write(name, bytes);
        let _read_or_refused = draft(here.root(), name, None, None);
    }
}

/// The same archive with other contents of its parts.
fn repacked(archive: &[u8], change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    use std::io::{Cursor, Read as _, Write as _};
    let mut old = zip::ZipArchive::new(Cursor::new(archive)).expect("an archive");
    let mut new = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for index in 0..old.len() {
        let mut part = old.by_index(index).expect("a part");
        let (name, mut bytes) = (part.name().expect("a name").to_string(), Vec::new());
        part.read_to_end(&mut bytes).expect("its contents");
        new.start_file(&*name, zip::write::SimpleFileOptions::default()).expect("a part");
        let is_damaged = name == "content.xml" || name.starts_with("xl/worksheets/sheet");
        new.write_all(&if is_damaged { change(&bytes) } else { bytes }).expect("written");
    }
    new.finish().expect("whole").into_inner()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// If a column contradicts the shape, the length, or the number of takes in a plan, a message names the column.
    #[test]
    fn contradicting_column_is_reported_before_a_purchase(
        shape in any_of(&["Format", "Aspect Ratio", "Shape", "Orientation", "Seitenverhältnis", "画面比例"]),
        length in any_of(&["Duration", "Length (s)", "Länge", "Dauer", "Seconds", "Durée", "Clip length"]),
        takes in any_of(&["takes", "Versions", "Qty"]),
        rows in proptest::collection::vec((any_of(&SHAPES), any_of(&LENGTHS), any_of(&TAKES)), 1..5),
    ) {
        let here = Workspace::new();
        let mut sheet = csv::Writer::from_path(here.path("s.csv")).expect("a sheet");
        sheet.write_record(["SKU", "Prompt", shape, length, takes]).expect("a head");
        for (number, (shape, length, takes)) in rows.iter().enumerate() {
            let cells = [&format!("row-{number}"), "A dog runs", shape.0, length.0, takes];
            sheet.write_record(cells).expect("a row");
        }
        sheet.flush().expect("written");
        let Draft { text, unused, .. } = draft(here.root(), "s.csv", None, None).expect("a draft");
        here.write("s.yaml", &text);
        let loaded = manifest::load(&Options::new(&here.path("s.yaml")), Catalog::embedded());
        let is_told = |column: &str| unused.iter().any(|unused| unused.contains(&format!("`{column}`")));
        if loaded.diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            return Ok(());
        }
        let jobs = loaded.manifest.expect("a manifest").jobs;
        prop_assert_eq!(jobs.len(), rows.len());
        for (job, (wanted_shape, wanted_length, wanted_takes)) in jobs.iter().zip(&rows) {
            let is_shaped = |ratio: &str| job.spec.is_upright() == (ratio == "9:16");
            let is_as_wanted = wanted_shape.0.is_empty() || wanted_shape.1.is_some_and(is_shaped);
            prop_assert!(is_as_wanted || is_told(shape), "{}: {:?}\n{text}", job.id(), wanted_shape);
            let is_as_wanted = wanted_length.0.is_empty() || job.spec.duration == wanted_length.1;
            prop_assert!(is_as_wanted || is_told(length), "{}: {:?}\n{text}", job.id(), wanted_length);
            prop_assert!(matches!(*wanted_takes, "" | "1") || is_told(takes), "{}: {wanted_takes}\n{text}", job.id());
        }
    }
}
