//! Small manifests with huge contents end in a clear error, within bounded memory. Ten thousand tasks are one timer.
#![cfg(unix)]

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use shotlist::domain::{AttemptState, History};
use shotlist::engine::{Settings, Stop};
use tokio::time::Instant;

use crate::support::fake::{FakeService, OwnBatch, jobs, run};
use crate::support::plans::{SECOND, plan};
use crate::support::{Answer, Ended, Program, Service, Workspace, has_code, json as answer, numbered_jobs};

/// Plans with an address space of this number of KiB.
fn plan_within(here: &Workspace, kib: u32) -> Ended {
    Program::script(here.root(), &format!("ulimit -v {kib}; exec \"$0\" run m.yaml --plan --format json")).ends()
}

#[track_caller]
fn refused(here: &Workspace, code: &str) {
    let Ended { code: exit, stdout, stderr } = plan_within(here, 900_000);
    assert_eq!(exit, Some(2), "{code}: {stderr}");
    let found: Value = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{code}: {error}: {stdout}"));
    let codes: Vec<&str> = found["diagnostics"]
        .as_array()
        .expect("diagnostics")
        .iter()
        .filter_map(|diagnostic| diagnostic["code"].as_str())
        .collect();
    assert!(codes.contains(&code), "{code} is not among {codes:?}");
}

fn rows(count: usize) -> String {
    (0..count).fold("n\n".to_owned(), |csv, row| csv + &row.to_string() + "\n")
}

fn entry(fields: &str) -> String {
    format!("version: 1\njobs:\n  - {{ id: \"a{{{{ row.n }}}}\", model: alpha-2, for_each: rows.csv, {fields} }}\n")
}

#[test]
fn multiplied_takes_rows_and_texts_are_refused_first() {
    let with_rows = |count, manifest: String| Workspace::with_manifest(&manifest).file("rows.csv", rows(count));
    refused(&with_rows(100_000, entry("prompt: x, takes: 1000")), "too-many-jobs");
    refused(&with_rows(250_000, entry("prompt: x")), "csv-too-long");
    refused(&with_rows(1000, entry("prompt: x, takes: \"{{ 900 }}\"")), "too-many-jobs");
    let large = "y".repeat(1_000_000);
    refused(&with_rows(20_000, format!("{}vars: {{ t: {large} }}\n", entry("prompt: \"{{ t }}\""))), "too-much-text");
    refused(&with_rows(100_000, entry(&format!("prompt: x, extra: {{ z: {} }}", "z".repeat(20_000)))), "too-much-text");
    let jobs = (0..5000).fold(String::new(), |jobs, n| format!("{jobs}  - {{ id: j{n}, prompt: *t }}\n"));
    let aliases = format!("version: 1\nvars: {{ t: &t {large} }}\ndefaults: {{ model: alpha-2 }}\njobs:\n{jobs}");
    refused(&Workspace::with_manifest(&aliases), "yaml-limit");
    let merged =
        aliases.replace("jobs:\n", "x: &m { prompt: *t }\njobs:\n").replace("prompt: *t }\n  ", "<<: *m }\n  ");
    refused(&Workspace::with_manifest(&merged), "yaml-limit");
}

#[test]
fn growing_or_deep_templates_are_refused() {
    let manifest = |template: &str| {
        let template = template.replace('"', "\\\"");
        Workspace::with_manifest(&format!(
            "version: 1\nvars: {{ a: b }}\njobs:\n  - {{ id: a, model: alpha-2, prompt: \"{template}\" }}\n"
        ))
    };
    for template in [
        "{{ '%1000000000d' | format(1) }}".to_owned(),
        "{{ '%*d' | format(1000000000, 1) }}".to_owned(),
        "{{ ([1] | slice(1000000000)) | length }}".to_owned(),
        "{{ ([1] | batch(1000000000, 1)) | length }}".to_owned(),
        format!("{{{{ {}a }}}}", "not ".repeat(50_000)),
        format!("{{{{ {}1 }}}}", "-".repeat(50_000)),
        format!("{{{{ a{} }}}}", ".a".repeat(50_000)),
        format!("{{{{ a{} }}}}", "|upper".repeat(50_000)),
        format!("{{{{ 1{} }}}}", " or 1".repeat(50_000)),
        format!("{}{}", "{% if a %}".repeat(50_000), "{% endif %}".repeat(50_000)),
        format!("{}{{{{ a }}}}", "{% set a %}{{ a }}{{ a }}{% endset %}".repeat(40)),
        "{% for i in '0123456789' %}{% for j in '0123456789' %}{% for k in '0123456789' %}{{ '%999s' | format(i) }}\
         {{ '%999s' | format(j) }}{% endfor %}{% endfor %}{% endfor %}"
            .to_owned(),
    ] {
        refused(&manifest(&template), "template");
    }
    let fine = "{{ '%03d' | format(7) }} {{ '%s of %s' | format(a, 'x') }}{% set c = a %}{{ c }}";
    let plan = plan_within(&manifest(fine), 900_000);
    assert!(plan.stdout.contains("007 b of xb"), "{}", plan.stdout);
}

#[test]
fn nesting_beyond_every_measure_is_refused_at_its_place() {
    for jobs in ["[".repeat(100_000), format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "{a: ".repeat(100_000)]
    {
        let here = Workspace::with_manifest(&format!("version: 1\njobs: {jobs}\n"));
        refused(&here, "yaml-limit");
        let Ended { stderr, .. } = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
        assert!(stderr.contains("m.yaml:2:") && has_code(&stderr, "yaml-limit"), "{stderr}");
    }
}

#[test]
fn hundred_findings_are_shown_and_the_others_counted() {
    let jobs = |count: usize| {
        (0..count).fold(String::new(), |jobs, n| format!("{jobs}  - {{ id: j{n}, model: alpha-3, prompt: x }}\n"))
    };
    let keys = (0..30_000).fold(String::new(), |keys, n| format!("{keys}key{n}: 1\n"));
    for (manifest, count) in [
        (format!("version: 1\njobs:\n{}", jobs(20_000)), 20_000),
        (format!("version: 1\n{keys}jobs:\n  - {{ id: a, model: alpha-2, prompt: x }}\n"), 30_000),
    ] {
        let here = Workspace::with_manifest(&manifest);
        let Ended { stdout, stderr, .. } = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
        assert_eq!(stdout, "");
        // A hundred diagnostics, and the refusal.
        assert_eq!(stderr.matches("error[").count(), 101);
        assert!(has_code(&stderr, "more-diagnostics") && has_code(&stderr, "manifest-invalid"));
        assert!(stderr.contains(&(count - 100).to_string()), "{}", &stderr[stderr.len() - 300..]);
        let found = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(2).stdout;
        let found: Value = serde_json::from_str(&found).expect("JSON");
        assert_eq!(found["diagnostics"].as_array().map(Vec::len), Some(100));
        assert_eq!(found["more"], count - 100);
    }
    // Errors are shown before warnings.
    let extras = (0..200).fold(String::new(), |jobs, n| {
        format!("{jobs}  - {{ id: j{n}, model: alpha-2, prompt: x, extra: {{ seed: 1 }} }}\n")
    });
    let here = Workspace::with_manifest(&format!("version: 1\njobs:\n{extras}{}", jobs(1).replace("j0", "wrong")));
    let Ended { stderr, .. } = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2);
    assert!(stderr.contains("alpha-3") && has_code(&stderr, "more-diagnostics"), "{stderr}");
}

#[test]
fn no_command_lets_a_manifest_read_the_key() {
    let here = Workspace::with_manifest("version: 1\njobs:\n  - { id: a, model: alpha-2, prompt_file: copy.txt }\n")
        .file("key", "sk-secret-123456");
    fs::hard_link(here.path("key"), here.path("copy.txt")).expect("a second name");
    for args in [
        ["run", "m.yaml", "--plan"].as_slice(),
        &["run", "m.yaml", "--sandbox"],
        &["report", "m.yaml"],
        &["status", "m.yaml"],
    ] {
        let ended = here.shotlist(args).env("SHOTLIST_API_KEY_FILE", "key").ends_with(2);
        assert!(has_code(&ended.stderr, "unreadable"), "{args:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("sk-secret") && !ended.stdout.contains("sk-secret"), "{args:?}");
    }
    assert_eq!(here.files(), ["copy.txt", "key", "m.yaml"]);
}

/// A workbook of these parts.
fn packed(parts: &[(&str, &str)]) -> Vec<u8> {
    let mut book = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        book.start_file(*name, zip::write::SimpleFileOptions::default()).expect("a part");
        std::io::Write::write_all(&mut book, text.as_bytes()).expect("written");
    }
    book.finish().expect("a workbook").into_inner()
}

/// A small workbook that unpacks to more than the memory of a machine, one with a cell in its last corner, and one with too many cells.
#[test]
fn workbook_bomb_is_refused() {
    let relations = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"r1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\" Target=\"worksheets/sheet1.xml\"/></Relationships>";
    let root = "<Relationships xmlns=\"http://schemas.openxmlformats.org/package/2006/relationships\"><Relationship Id=\"r1\" Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>";
    let book = "<workbook xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" xmlns:r=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>";
    let with_sheet = |rows: &str| {
        let sheet = format!(
            "<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData>{rows}</sheetData></worksheet>"
        );
        packed(&[
            ("_rels/.rels", root),
            ("xl/workbook.xml", book),
            ("xl/_rels/workbook.xml.rels", relations),
            ("xl/worksheets/sheet1.xml", &sheet),
        ])
    };
    let manifest = entry("prompt: x").replace("rows.csv", "rows.xlsx");
    let of = |rows: &str| Workspace::with_manifest(&manifest).file("rows.xlsx", with_sheet(rows));
    refused(&of(&" ".repeat(200 << 20)), "unreadable");
    let head = "<row r=\"1\"><c r=\"A1\" t=\"str\"><v>n</v></c></row>";
    let corner = of(&format!(
        "{head}<row r=\"2\"><c r=\"A2\"><v>7</v></c></row><row r=\"1048576\"><c r=\"XFD1048576\"><v>1</v></c></row>"
    ));
    let planned = plan_within(&corner, 900_000);
    assert!(planned.code == Some(0) && planned.stdout.contains("\"a7\""), "{}{}", planned.stdout, planned.stderr);
    let many: String = (2..250_000)
        .fold(head.to_owned(), |rows, row| rows + &format!("<row r=\"{row}\"><c r=\"A{row}\"><v>{row}</v></c></row>"));
    refused(&of(&many), "csv-too-long");
    let wide: String =
        (0..1_100_000).fold("<row r=\"1\">".to_owned(), |cells, _| cells + "<c><v>1</v></c><c><v>2</v></c>") + "</row>";
    refused(&of(&wide), "unreadable");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_tasks_at_once() {
    let service = FakeService::taking(|number| Duration::from_millis(30_000 + (number as u64 * 7919) % 90_000));
    let settings = Settings { concurrency: 10_000, ..Settings::default() };
    let (ledger, start) = (OwnBatch::default(), Instant::now());
    run(&service, &ledger, &settings, &Stop::default(), &plan(&jobs(10_000), &History::default(), None)).await;
    assert!(ledger.states().iter().all(|state| *state == AttemptState::Completed));
    assert!(start.elapsed() < 180 * SECOND, "{:?}", start.elapsed());
}

/// The service would take 25 minutes, and a simulator at the usual speed more than one.
#[test]
fn simulator_does_not_wait_for_the_generation_of_many_jobs() {
    let here = Workspace::with_manifest(&numbered_jobs(100));
    let ended = here.shotlist(&["run", "m.yaml", "--sandbox", "--yes"]).ends_with(0);
    insta::assert_snapshot!(ended.stderr.lines().find(|line| line.contains("times as fast")).unwrap_or_default(), @"the simulator generates 156 times as fast as documented");
    let report = here.json("shotlist-sandbox/m/report.json");
    let states: Vec<&Value> = report["jobs"].as_array().expect("jobs").iter().map(|job| &job["state"]).collect();
    assert_eq!(states, vec![&json!("completed"); 100]);
    let ended = here.shotlist(&["run", "m.yaml", "--sandbox", "--yes"]).ends_with(0);
    assert!(!ended.stderr.contains("times as fast"), "{}", ended.stderr);
}

/// Two thousand jobs with long words stay within the bound, and those that are left out are counted.
#[test]
fn markdown_of_two_thousand_jobs_is_bounded() {
    let here = Workspace::with_manifest(&numbered_jobs(2000).replace("id: j", &format!("id: {}", "j".repeat(100))));
    let long = format!("no ({})", "x".repeat(400));
    let refusing = Service::scripted(move |asked| match asked.earlier {
        _ if asked.method == "GET" => Answer::Well,
        0 => Answer::Well,
        _ => answer(400, &json!({ "error": { "message": long } })),
    });
    here.run(&refusing, &["--concurrency", "64"]).ends_with(1);
    let text = here.shotlist(&["status", "m.yaml", "--format", "markdown"]).ends_with(0).stdout;
    assert!((50_000..=60_000).contains(&text.len()), "{}", text.len());
    let last = text.lines().last().expect("a last line");
    let left: usize = last.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    let shown = text.lines().filter(|line| line.contains("| `jjj")).count();
    assert!(last.ends_with("more, which have no room here.") && shown + left == 2000, "{shown}: {last}");
    let plan = here.run(&refusing, &["--batch", "other", "--plan", "--format", "markdown"]).ends_with(0).stdout;
    assert!(
        plan.starts_with("<!-- shotlist plan: m / other -->\n") && plan.len() <= 60_000,
        "{}: {}",
        plan.len(),
        &plan[..100]
    );
    assert!(
        plan.contains("2000 jobs to submit") && plan.contains("more, which have no room here"),
        "{}",
        &plan[..2000]
    );
}
