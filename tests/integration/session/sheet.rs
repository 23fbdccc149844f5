//! From a spreadsheet to a spreadsheet: the rows return with their results.

use calamine::{Data, Reader as _};
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};
use serde_json::json;

use crate::support::{Service, Workspace, has_code};

/// A workbook with two sheets, as people make them.
fn workbook(here: &Workspace) {
    let mut book = Workbook::new();
    let first = book.add_worksheet();
    first.set_name("Notes").expect("a name").write_string(0, 0, "nothing of use").expect("written");
    let sheet = book.add_worksheet();
    sheet.set_name("Spring").expect("a name");
    for (column, head) in (0..).zip(["sku", "seconds", "when", "sold", "title", "half"]) {
        sheet.write_string(0, column, head).expect("written");
    }
    let day = Format::new().set_num_format("yyyy-mm-dd");
    for (row, sku) in [(1, 7.0), (3, 12.0)] {
        sheet.write_number(row, 0, sku).expect("written");
        sheet.write_number(row, 1, 5.0).expect("written");
        let when = ExcelDateTime::from_ymd(2026, 11, 21).expect("a day");
        sheet.write_datetime_with_format(row, 2, &when, &day).expect("written");
        sheet.write_boolean(row, 3, true).expect("written");
        sheet.write_formula(row, 4, Formula::new("=\"mug\"").set_result("mug")).expect("written");
        sheet.write_number(row, 5, 7.5).expect("written");
    }
    std::fs::write(here.path("looks.xlsx"), book.save_to_buffer().expect("a workbook")).expect("written");
}

#[test]
fn workbook_values_are_read_as_shown() {
    let here = Workspace::new();
    workbook(&here);
    let list = |for_each: &str| {
        format!(
            "version: 1\njobs: [{{ id: \"s-{{{{ row.sku }}}}\", for_each: {for_each}, model: beta-2.0-lite, duration: \"{{{{ row.seconds }}}}\", prompt: \"{{{{ row.title }}}} {{{{ row.when }}}} {{{{ row.sold }}}} {{{{ row.half }}}}\" }}]\n"
        )
    };
    here.write("m.yaml", list("{ file: looks.xlsx, sheet: Spring }"));
    let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
    let prompts: Vec<&str> =
        (0..2).map(|at| plan["jobs"][at]["request"]["prompt"].as_str().expect("a prompt")).collect();
    assert_eq!(prompts, ["mug 2026-11-21 TRUE 7.5"; 2]);
    assert_eq!((&plan["jobs"][0]["id"], &plan["jobs"][1]["id"]), (&json!("s-7"), &json!("s-12")));
    for (for_each, told) in [
        ("{ file: looks.xlsx, sheet: Sprign }", "`Spring`"),
        ("looks.xlsx", "looks.xlsx has a header and no rows"),
        ("{ file: m.yaml, sheet: x }", "is not a workbook"),
        ("{ sheet: Spring }", "names no `file`"),
        ("broken.xlsx", "can't read workbook"),
    ] {
        here.write("broken.xlsx", "PK\u{3}\u{4} and no more");
        here.write("m.yaml", list(for_each));
        let refused = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).stderr;
        assert!(refused.contains(told), "{for_each}: {refused}");
    }
}

#[test]
fn formula_without_a_result_is_no_empty_cell() {
    let here = Workspace::with_manifest(
        "version: 1
jobs: [{ id: a, for_each: looks.xlsx, model: beta-2.0-lite, prompt: \"{{ row.title }}\", duration: \"{{ row.seconds }}\" }]
",
    );
    let written = |stored: &str| {
        let mut book = Workbook::new();
        let sheet = book.add_worksheet();
        sheet.write_string(0, 0, "title").expect("written").write_string(0, 1, "seconds").expect("written");
        sheet.write_string(1, 0, "mug").expect("written");
        sheet.write_formula(1, 1, Formula::new("=4+4").set_result(stored)).expect("written");
        std::fs::write(here.path("looks.xlsx"), book.save_to_buffer().expect("a workbook")).expect("written");
    };
    written("8");
    insta::assert_snapshot!(here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout, @"
    m: 1 job

       ACTION  JOB  MODEL          SHAPE     LENGTH   COST  WHY
       submit  a    beta-2.0-lite  1280x720     8 s  $6.00  is new

       MODEL          JOBS  SECONDS   COST
       beta-2.0-lite     1        8  $6.00

    1 job to submit for $6.00: about 75 s, about 5 requests
    reads 1 file: looks.xlsx
    digest: 8623b6bc01a43d138501b057a4e544dbae41a484c8c640dc820e84885f63fdb8
    to buy exactly this: shotlist run m.yaml --approved 8623b6bc01a43d138501b057a4e544dbae41a484c8c640dc820e84885f63fdb8
    ");
    unstore(&here);
    let refused = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).shows("cell-error").stderr;
    insta::assert_snapshot!(refused, @r#"
    error[cell-error]: the cell under `seconds` contains a formula without a result
     --> m.yaml:2:102
      |
    2 | ...row.title }}", duration: "{{ row.seconds }}" }]
      |                                 ^^^^^^^^^^^
      |
      = note: in job `a` (looks.xlsx line 2)
      = help: mend the cell in a spreadsheet program, and save the file: that stores the results of formulas

    error[manifest-invalid]: `m.yaml` has 1 error
      note: nothing was submitted; nothing was spent
    "#);
}

/// Takes the stored results out of a workbook, as libraries write one that compute nothing.
fn unstore(here: &Workspace) {
    use std::io::{Cursor, Read as _, Write as _};
    let packed = std::fs::read(here.path("looks.xlsx")).expect("the workbook");
    let mut from = zip::ZipArchive::new(Cursor::new(packed)).expect("an archive");
    let mut to = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for at in 0..from.len() {
        let (mut entry, mut text) = (from.by_index(at).expect("an entry"), String::new());
        entry.read_to_string(&mut text).expect("XML");
        let name = entry.name().expect("a name").into_owned();
        to.start_file(name, zip::write::SimpleFileOptions::default()).expect("an entry");
        to.write_all(text.replace("<v>8</v>", "<v></v>").as_bytes()).expect("written");
    }
    std::fs::write(here.path("looks.xlsx"), to.finish().expect("whole").into_inner()).expect("written");
}

const CAMPAIGN: &str = "version: 1
defaults: { model: alpha-2, labels: { client: acme } }
jobs:
  - id: \"{{ row.sku }}-{{ look }}\"
    for_each: products.csv
    matrix: { look: [day, night] }
    prompt: \"{{ row.Title }} by {{ look }}\"
  - { id: hero, prompt: alone, aspect_ratio: \"9:16\" }
";

#[test]
fn report_has_the_row_values_of_each_job() {
    let here = Workspace::with_manifest(CAMPAIGN)
        .file("products.csv", "sku,Title,Campaign note\nA1,Mug,\"=1+1\"\nA2,\"Lamp, tall\",\n");
    let service = Service::well();
    here.run(&service, &["--report", "out.xlsx"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("shotlist-out/m/report.csv")).expect("the report");
    let mut csv = csv::Reader::from_reader(text.trim_start_matches('\u{feff}').as_bytes());
    let heads: Vec<String> = csv.headers().expect("heads").iter().skip(25).map(str::to_owned).collect();
    assert_eq!(
        heads,
        [
            "price_usd",
            "at_risk_usd",
            "choice",
            "reviewer",
            "note",
            "delivered_s",
            "width",
            "height",
            "fps",
            "audio",
            "mismatch",
            "reported_usd",
            "label.client",
            "row.sku",
            "row.Title",
            "row.Campaign note",
            "matrix.look"
        ]
    );
    let rows: Vec<Vec<String>> =
        csv.records().map(|row| row.expect("a row").iter().map(str::to_owned).collect()).collect();
    let behind = |at: usize| rows[at].iter().skip(37).map(String::as_str).collect::<Vec<_>>();
    assert_eq!(behind(0), ["acme", "A1", "Mug", "'=1+1", "day"]);
    assert_eq!(behind(3), ["acme", "A2", "Lamp, tall", "", "night"]);
    assert_eq!(behind(4), ["acme", "", "", "", ""]);
    // No spreadsheet takes it for a time of day.
    assert_eq!(rows[4][12], "'9:16");
    let job = &here.report()["jobs"][3];
    assert_eq!(job["row"], json!({ "sku": "A2", "Title": "Lamp, tall", "Campaign note": "" }));
    assert_eq!((&job["matrix"], &here.report()["jobs"][4]["row"]), (&json!({ "look": "night" }), &json!(null)));

    let mut book: calamine::Xlsx<_> = calamine::open_workbook(here.path("out.xlsx")).expect("a workbook");
    let sheet = book.worksheet_range("shotlist").expect("the sheet");
    let cell = |head: &str, line: u32| {
        let column = sheet.rows().next().expect("heads").iter().position(|cell| *cell == *head).expect("a column");
        sheet.get_value((line, u32::try_from(column).expect("few"))).cloned().unwrap_or(Data::Empty)
    };
    assert_eq!((cell("price_usd", 1), cell("take", 1)), (Data::Float(0.9), Data::Float(1.0)));
    assert_eq!(cell("row.Campaign note", 1), Data::String("=1+1".into()), "a text, and no formula");
    assert_eq!(cell("aspect_ratio", 5), Data::String("9:16".into()));
    assert!(matches!(cell("submitted_at", 1), Data::DateTime(_)), "{:?}", cell("submitted_at", 1));
    // It is replaced by the next run, and no other workbook is.
    here.run(&service, &["--report", "out.xlsx"]).ends_with(0);
    workbook(&here);
    let refused = here.run(&service, &["--report", "looks.xlsx"]).ends_with(2).stderr;
    assert!(has_code(&refused, "not-a-report"), "{refused}");
}

#[test]
fn sample_is_spread_over_models_and_continued() {
    let here = Workspace::with_manifest("version: 1
jobs:
  - { id: \"a-{{ row.n }}\", for_each: [{ n: 1 }, { n: 2 }, { n: 3 }, { n: 4 }], model: alpha-2, prompt: \"a {{ row.n }}\" }
  - { id: \"b-{{ row.n }}\", for_each: [{ n: 1 }, { n: 2 }], model: beta-2.0-lite-fast, prompt: \"b {{ row.n }}\" }
");
    let service = Service::well();
    let totals = here.plan(&["--sample", "3"])["totals"].clone();
    assert_eq!((&totals["submit"], &totals["left_out"]), (&3.into(), &3.into()));
    here.run(&service, &["--sample", "3"]).ends_with(0);
    assert_eq!(here.states().iter().filter(|state| *state == "completed").count(), 3);
    let bought = here.ledger("SELECT model, count(*) FROM attempt GROUP BY model ORDER BY model");
    assert_eq!(bought, [["alpha-2", "2"], ["beta-2.0-lite-fast", "1"]]);
    // The same ones under an approval that is given again, and after them the first that are left.
    here.run(&service, &["--sample", "1"]).ends_with(0);
    assert_eq!(service.posts().len(), 4);
    here.run(&service, &[]).ends_with(0);
    assert_eq!(service.posts().len(), 6);
    here.run(&service, &["--sample", "0"]).ends_with(2);
}

#[test]
fn approved_sample_has_the_same_jobs_again() {
    let here = Workspace::with_manifest(&crate::support::numbered_jobs(6));
    let service = Service::well();
    let plan = here.run(&service, &["--plan", "--sample", "2", "--format", "json"]).ends_with(0).stdout;
    here.write("plan.json", plan);
    for _ in 0..2 {
        here.run(&service, &["--sample", "2", "--approved", "plan.json"]).ends_with(0);
        assert_eq!(service.posts().len(), 2);
    }
}

#[test]
fn choices_are_taken_from_a_file() {
    let here = Workspace::with_manifest(&crate::support::numbered_jobs(4));
    let service = Service::well();
    // One by one, so the second job has the second task.
    here.run(&service, &["--concurrency", "1"]).ends_with(0);
    here.write(
        "choices.json",
        json!({ "name": "m", "batch": "", "keep": ["j0", "j3"], "retake": ["j1", "j1"], "tasks": { "j0": "t0", "j1": "t1", "j3": "t3" }, "notes": { "j1": "darker" } })
            .to_string(),
    );
    let status = here.status(&["--select", "@choices.json"]);
    assert_eq!((&status["jobs"][0]["id"], &status["jobs"][1]["id"]), (&json!("j0"), &json!("j3")));
    here.run(&service, &["--retake", "@choices.json"]).ends_with(0);
    assert_eq!(here.ledger("SELECT job FROM attempt WHERE id > 4"), [["j1"]]);
    here.write("ids.txt", "\u{feff}j2\r\n\r\n j0 \r\n");
    here.run(&service, &["--retake", "@ids.txt"]).ends_with(0);
    assert_eq!(service.posts().len(), 7);
    let choices = |value: serde_json::Value| value.to_string();
    for (file, content, code) in [
        (
            "other.json",
            choices(json!({ "name": "other", "retake": ["j0"], "tasks": { "j0": "t0" } })),
            "choices-invalid",
        ),
        (
            "batch.json",
            choices(json!({ "name": "m", "batch": "may", "retake": ["j0"], "tasks": { "j0": "t0" } })),
            "choices-invalid",
        ),
        ("empty.json", choices(json!({ "name": "m", "keep": ["j0"], "retake": [] })), "choices-invalid"),
        (
            "taskless.json",
            choices(json!({ "name": "m", "retake": ["j0", "j1"], "tasks": { "j0": "t0", "j1": " " } })),
            "choices-invalid",
        ),
        ("gone.txt", "j0\nj9\n".to_owned(), "no-match"),
        ("globs.txt", "j*\n".to_owned(), "choices-invalid"),
        ("broken.json", "{".to_owned(), "choices-invalid"),
    ] {
        here.write(file, content);
        here.run(&service, &["--retake", &format!("@{file}")]).fails_with(code, 2);
    }
    for file in ["@missing.txt", "@gone.txt"] {
        here.run(&service, &["--select", file]).ends_with(2);
    }
    assert_eq!(service.posts().len(), 7);
}
