//! `init --from`: a draft of a manifest for a spreadsheet.

use proptest::prelude::*;
use shotlist::domain::Rule;
use shotlist::manifest::draft::{Draft, draft};
use shotlist::manifest::{self, Options};

use crate::support::{Workspace, has_code, line_of, priced};

fn drafted(sheet: &str) -> (Workspace, String) {
    let here = Workspace::new().file("sheet.csv", sheet);
    here.shotlist(&["init", "--from", "sheet.csv"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest");
    (here, text)
}

/// The number of jobs that a plan of `sheet.yaml` submits, and their price.
fn planned(here: &Workspace, args: &[&str]) -> (u64, String) {
    let plan = here.shotlist(&[&["run", "sheet.yaml", "--plan", "--format", "json"], args].concat()).ends_with(0);
    priced(&serde_json::from_str(&plan.stdout).expect("JSON"))
}

#[test]
fn draft_lists_the_guess_for_each_column() {
    let sheet = "Client;SKU;Product Name;Length (s);Size;Video Prompt;Price\n\
                 Acme;M 1;Mug;5;720x1280;A blue mug turns slowly on marble;9,99\n\
                 Beta;L 2;Lamp;8;720x1280;A brass lamp lights up a dark desk;19,99\n";
    let (here, text) = drafted(sheet);
    insta::assert_snapshot!(text, @r#"
    # yaml-language-server: $schema=shotlist.schema.json
    # Made from sheet.csv: a job for each row, 2 now. The meaning of each column is a guess; the list at the end has all of them.
    version: 1
    name: "sheet"

    # A run spends at most this, in USD. Without it, a run asks you first, and without a terminal it refuses.
    # budget: { run: 10.00 }

    defaults:
      # the cheapest model that uses most of your columns: alpha-2 $0.90 a video, beta-2.0-lite $0.75 a second, beta-2.0-lite-fast $0.65 a second
      model: beta-2.0-lite-fast

    jobs:
      - id: "{{ row.SKU | slug }}"
        # A paid video is known by its id: a row whose `SKU` changes is bought again.
        for_each: "sheet.csv"
        prompt: "{{ row['Video Prompt'] }}"
        duration: "{{ row['Length (s)'] }}" # in seconds; some models are priced by it
        size: "{{ row.Size }}"
        labels: { client: "{{ row.Client }}" }
        # The columns, with their first values:
        #   `Client` (Acme, Beta): a label
        #   `SKU` (M 1, L 2): the ID
        #   `Product Name` (Mug, Lamp): not used: not a field of a job
        #   `Length (s)` (5, 8): duration
        #   `Size` (720x1280, 720x1280): size
        #   `Video Prompt` (A blue mug turns slowly…, A brass lamp lights up …): the prompt
        #   `Price` (9,99, 19,99): not used: not a field of a job
    "#);
    assert_eq!(planned(&here, &[]), (2, "8.45".to_owned()));
    // A draft sets no limit, so a run without a terminal buys nothing.
    here.shotlist(&["run", "sheet.yaml", "--base-url", "http://127.0.0.1:9"]).env("SHOTLIST_API_KEY", "k").ends_with(3);
}

#[test]
fn sheet_without_prompt_or_fitting_length_gives_a_draft() {
    let sheet = "Name,Color,Seconds,Aspect,Photo\nmug,blue,7,16:9,mug.png\nmug,red,7,9:16,none.png\n";
    let (here, text) = drafted(sheet);
    insta::assert_snapshot!(text, @r#"
    # yaml-language-server: $schema=shotlist.schema.json
    # Made from sheet.csv: a job for each row, 2 now. The meaning of each column is a guess; the list at the end has all of them.
    version: 1
    name: "sheet"

    # A run spends at most this, in USD. Without it, a run asks you first, and without a terminal it refuses.
    # budget: { run: 10.00 }

    defaults:
      # the cheapest model that uses most of your columns: alpha-2 $0.90 a video, beta-2.0-lite $0.75 a second, beta-2.0-lite-fast $0.65 a second
      model: alpha-2

    jobs:
      - id: "{{ row.Name }}-{{ row.Color }}"
        # A paid video is known by its id: a row whose `Name` or `Color` changes is bought again.
        for_each: "sheet.csv"
        # No column looks like a prompt: describe the video in a sentence, for example with "{{ row.Name }}".
        prompt: ""
        # duration: "{{ row.Seconds }}" # this model always makes 12 s; `--model beta-2.0-lite-fast` takes it
        shape: "{{ row.Aspect }}"
        image_file: "{{ row.Photo }}" # needs `--asset-command`, which prints a URL for each file
        # The columns, with their first values:
        #   `Name` (mug, mug): the ID
        #   `Color` (blue, red): the ID
        #   `Seconds` (7, 7): not used: this model always makes 12 s; `--model beta-2.0-lite-fast` takes it
        #   `Aspect` (16:9, 9:16): shape
        #   `Photo` (mug.png, none.png): image_file
    "#);
    // A video is never bought without its image.
    here.shotlist(&["run", "sheet.yaml", "--plan"]).fails_with("unreadable", 2);
    for image in ["mug.png", "none.png"] {
        here.write(image, b"\x89PNG\r\n\x1a\n");
    }
    // The words of a sheet are no prompt until the user writes a sentence.
    let refused = here.shotlist(&["run", "sheet.yaml", "--sandbox", "--yes"]).ends_with(2).stderr;
    assert!(has_code(&refused, "prompt-blank"), "{refused}");
    here.write("sheet.yaml", text.replace("prompt: \"\"", "prompt: \"A {{ row.Color }} {{ row.Name }} turns\""));
    here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0);
}

#[test]
fn model_column_decides_the_model_of_each_row() {
    let sheet = "id,model,text,aspect_ratio,size,duration\n\
                 a,alpha-2,A dog runs,9:16,,\nb,beta-2.0-lite,A cat sleeps,,720x1280,10\nc,,A cow stands,,,\n";
    let (here, _) = drafted(sheet);
    let plan = here.shotlist(&["run", "sheet.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("a plan");
    let models: Vec<_> = plan["jobs"].as_array().expect("jobs").iter().map(|job| job["model"].clone()).collect();
    assert_eq!(models, ["alpha-2", "beta-2.0-lite", "beta-2.0-lite-fast"]);
}

/// A time of day is no shape, a section no length, a pack no size, and a price no ID.
#[test]
fn columns_similar_to_fields_are_not_used() {
    let sheet = "Shot #,Time,Section,Pack,Price,Due,Client,Project\n\
                 1,10:30,7,2x3,9.99,2026-12-01,Acme,Spring\n1,11:15,8,4x6,8.99,2026-12-02,Acme,Autumn\n";
    let (_, text) = drafted(sheet);
    let jobs = text.split_once("jobs:\n").expect("jobs").1;
    insta::assert_snapshot!(jobs, @r#"
    - id: "{{ row['Shot #'] }}-{{ row.Section }}"
      # A paid video is known by its id: a row whose `Shot #` or `Section` changes is bought again.
      for_each: "sheet.csv"
      # No column looks like a prompt: describe the video in a sentence.
      prompt: ""
      labels: { client: "{{ row.Client }}", project: "{{ row.Project }}" }
      # The columns, with their first values:
      #   `Shot #` (1, 1): the ID
      #   `Time` (10:30, 11:15): not used: not a field of a job
      #   `Section` (7, 8): the ID
      #   `Pack` (2x3, 4x6): not used: not a field of a job
      #   `Price` (9.99, 8.99): not used: not a field of a job
      #   `Due` (2026-12-01, 2026-12-02): not used: not a field of a job
      #   `Client` (Acme, Acme): a label
      #   `Project` (Spring, Autumn): a label
    "#);
}

/// A length in minutes is no length in seconds, and a column of approvals is told in other languages, too.
#[test]
fn other_unit_is_an_error_and_foreign_approvals_are_told() {
    let sheet = "R\u{e9}f,Description,Dur\u{e9}e (min),Valid\u{e9}\nX1,A caf\u{e9} in the morning rain,1,oui\nX2,A boat on a quiet lake,2,non\n";
    insta::assert_snapshot!(drafted(sheet).1.split_once("jobs:\n").expect("jobs").1, @r#"
    - id: "{{ row['Réf'] }}"
      # A paid video is known by its id: a row whose `Réf` changes is bought again.
      for_each: "sheet.csv"
      # `Validé` is `non` in 1 of 2 rows, and they are jobs. To leave them out, write:
      # for_each: { file: "sheet.csv", exclude: [{ "Validé": "non" }] }
      prompt: "{{ row.Description }}"
      # `1` is not in seconds, by the name of the column: write one `duration` for all rows, or remove the line for the default.
      duration: ""
      # The columns, with their first values:
      #   `Réf` (X1, X2): the ID
      #   `Description` (A café in the morning r…, A boat on a quiet lake): the prompt
      #   `Durée (min)` (1, 2): not used: `1` is not in seconds, by the name of the column
      #   `Validé` (oui, non): not used: `non` in 1 row; a comment in the draft shows how to leave such rows out
    "#);
}

/// A shot list and a campaign plan.
#[test]
fn shot_lists_and_campaign_sheets_are_understood() {
    let shots = "Shot #,Scene,Action,Duration,Aspect Ratio,Status\n\
                 1,1,A courier climbs a stair in the rain,5.0,16:9,approved\n2,1,She rings a bell and waits,6,9:16,draft\n";
    insta::assert_snapshot!(drafted(shots).1.split_once("jobs:\n").expect("jobs").1, @r#"
    - id: "{{ row['Shot #'] }}-{{ row.Scene }}"
      # A paid video is known by its id: a row whose `Shot #` or `Scene` changes is bought again.
      for_each: "sheet.csv"
      # `Status` is `draft` in 1 of 2 rows, and they are jobs. To leave them out, write:
      # for_each: { file: "sheet.csv", exclude: [{ "Status": "draft" }] }
      prompt: "{{ row.Action }}"
      duration: "{{ row.Duration }}" # in seconds; some models are priced by it
      shape: "{{ row['Aspect Ratio'] }}"
      tags: "{{ row.Status }}" # `--tag NAME` runs only the jobs with that tag
      # The columns, with their first values:
      #   `Shot #` (1, 2): the ID
      #   `Scene` (1, 1): the ID
      #   `Action` (A courier climbs a stai…, She rings a bell and wa…): the prompt
      #   `Duration` (5.0, 6): duration
      #   `Aspect Ratio` (16:9, 9:16): shape
      #   `Status` (approved, draft): tags
    "#);
    let campaign = "Produkt;Claim;L\u{e4}nge;Format;Bild-URL;Status;Kunde;Preis\n\
                    Emaille-Becher;Der Becher;5,0;16:9;https://x.example/a.png;freigegeben;Acme;19,90 \u{20ac}\n\
                    Vase;;8,0;landscape;https://x.example/b.png;gestoppt;Acme;35 \u{20ac}\n";
    insta::assert_snapshot!(drafted(campaign).1.split_once("jobs:\n").expect("jobs").1, @r#"
    - id: "{{ row.Produkt }}"
      # A paid video is known by its id: a row whose `Produkt` changes is bought again.
      # Left out: rows whose `Status` is `gestoppt`.
      for_each: { file: "sheet.csv", exclude: [{ "Status": "gestoppt" }] }
      # No column looks like a prompt: describe the video in a sentence, for example with "{{ row.Produkt }}, {{ row.Claim }}".
      prompt: ""
      # duration: "{{ row['Länge'] }}" # this model always makes 12 s; `--model beta-2.0-lite-fast` takes it
      shape: "{{ row.Format }}"
      image: "{{ row['Bild-URL'] }}" # the video starts with this image
      tags: "{{ row.Status }}" # `--tag NAME` runs only the jobs with that tag
      labels: { kunde: "{{ row.Kunde }}" }
      # The columns, with their first values:
      #   `Produkt` (Emaille-Becher, Vase): the ID
      #   `Claim` (Der Becher): words for the prompt
      #   `Länge` (5,0, 8,0): not used: this model always makes 12 s; `--model beta-2.0-lite-fast` takes it
      #   `Format` (16:9, landscape): shape
      #   `Bild-URL` (https://x.example/a.png, https://x.example/b.png): image
      #   `Status` (freigegeben, gestoppt): tags
      #   `Kunde` (Acme, Acme): a label
      #   `Preis` (19,90 €, 35 €): not used: not a field of a job
    "#);
    let twice = "ID,Prompt\nv1,A dog runs\nv1,A cat sleeps\n";
    insta::assert_snapshot!(drafted(twice).1.split_once("jobs:\n").expect("jobs").1, @r#"
    - id: "sheet-{{ row_number }}"
      # A paid video is known by its id. No column has a lasting name for each row: a row that you insert
      # renumbers those below it, and they are bought again. A column of ids prevents that.
      # `ID` could be the id, but `v1` repeats.
      for_each: "sheet.csv"
      prompt: "{{ row.Prompt }}"
      # The columns, with their first values:
      #   `ID` (v1, v1): not used: `v1` repeats
      #   `Prompt` (A dog runs, A cat sleeps): the prompt
    "#);
}

/// A column with the name of a field is always used, so a wrong cell is an error and not a default.
#[test]
fn plan_reports_invalid_cells_of_a_field_column() {
    for (sheet, told) in [
        ("id,prompt,model\na,A dog,beta-2.0-lite\nb,A cat,beta-2-lite\n", "`beta-2-lite`"),
        ("id,prompt,duration\na,A dog,five\nb,A cat,7s\n", "five"),
        ("id,prompt,Format\na,A dog,16:9\nb,A cat,square\n", "square"),
        ("id,prompt,Video Model\na,A dog,alpha-2\nb,A cat,Alpha-2\n", "Alpha-2"),
    ] {
        let here = Workspace::new().file("sheet.csv", sheet);
        here.shotlist(&["init", "--from", "sheet.csv"]).ends_with(0);
        let refused = here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(2).stderr;
        assert!(refused.contains(told), "{refused}");
    }
}

/// `size` is for one family and `aspect_ratio` for the other. The help of the errors makes the sheet valid.
#[test]
fn empty_cells_fix_a_sheet_with_both_families() {
    let sheet = |alpha: &str, beta: &str| {
        let head = "id,model,prompt,duration,size,aspect_ratio";
        format!("{head}\na,alpha-2,A crane,{alpha}\nb,beta-2.0-lite,Waves,{beta}\n")
    };
    let (here, _) = drafted(&sheet("5,1280x720,16:9", "5,1280x720,16:9"));
    let told = here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(2).stderr;
    assert_eq!(told.matches("; clear the cell to leave out the field for this job").count(), 3, "{told}");
    here.write("sheet.csv", sheet(",,16:9", "5,1280x720,"));
    here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0);
    // An error in the manifest itself does not name a cell.
    here.write(
        "m.yaml",
        "version: 1\njobs: [{ id: '{{ row.id }}', for_each: sheet.csv, model: alpha-2, prompt: x, duration: 5 }]\n",
    );
    here.shotlist(&["run", "m.yaml", "--plan"]).fails_with("duration-out-of-range", 2).lacks(&["clear the cell"]);
}

#[test]
fn lengths_of_things_are_no_durations_and_row_numbers_no_ids() {
    let sheet = "Nr,Produkt,Length (cm),Duration (s),Preis,Prompt\n\
                 1,Tasse,7,5,9.99,Eine blaue Tasse dreht sich langsam\n2,Lampe,9,6,19.99,Eine Lampe leuchtet im Dunkeln\n";
    let (here, text) = drafted(sheet);
    let jobs = text.split_once("jobs:\n").expect("jobs").1;
    insta::assert_snapshot!(jobs, @r#"
    - id: "{{ row.Produkt }}"
      # A paid video is known by its id: a row whose `Produkt` changes is bought again.
      for_each: "sheet.csv"
      prompt: "{{ row.Prompt }}"
      duration: "{{ row['Duration (s)'] }}" # in seconds; some models are priced by it
      # The columns, with their first values:
      #   `Nr` (1, 2): not used: not a field of a job
      #   `Produkt` (Tasse, Lampe): the ID
      #   `Length (cm)` (7, 9): not used: `7` may be in another unit
      #   `Duration (s)` (5, 6): duration
      #   `Preis` (9.99, 19.99): not used: not a field of a job
      #   `Prompt` (Eine blaue Tasse dreht …, Eine Lampe leuchtet im …): the prompt
    "#);
    assert_eq!(planned(&here, &[]), (2, "7.15".to_owned()));
}

/// A column of row numbers is an ID only if there is no other: an inserted row may change the numbers.
#[test]
fn row_numbers_are_ids_only_without_others() {
    let here = Workspace::new().file("sheet.csv", "id,prompt,takes\n1,A red ball rolls,2\n2,A blue ball rolls,2\n");
    here.shotlist(&["init", "--from", "sheet.csv", "--log-format", "json"]).ends_with(0).shows("columns-unused");
    let text = std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest");
    insta::assert_snapshot!(text.split_once("jobs:\n").expect("jobs").1, @r#"
    - id: "{{ row.id }}"
      # A paid video is known by its id: a row whose `id` changes is bought again.
      # It counts the rows: give an inserted row a new number, and keep the others.
      for_each: "sheet.csv"
      prompt: "{{ row.prompt }}"
      # takes: "{{ row.takes }}" # each take costs its price; remove the first `#` to buy as many as the sheet says
      # The columns, with their first values:
      #   `id` (1, 2): the ID
      #   `prompt` (A red ball rolls, A blue ball rolls): the prompt
      #   `takes` (2, 2): not used: each take costs its price
    "#);
    here.shotlist(&["run", "sheet.yaml", "--sandbox", "--yes"]).ends_with(0);
    here.write("sheet.csv", "id,prompt\n3,A new ball rolls\n1,A red ball rolls\n2,A blue ball rolls\n");
    assert_eq!(planned(&here, &["--sandbox"]), (1, "0.90".to_owned()));
    let named = drafted("id,name,prompt\n1,mug,A mug turns\n2,lamp,A lamp shines\n").1;
    insta::assert_snapshot!(line_of(&named, "- id: "), @r#"- id: "{{ row.name }}""#);
}

#[test]
fn one_word_is_a_prompt_and_an_article_number_an_id() {
    for (head, first, second, id) in [
        ("sku", "m1", "m2", "row.sku"),
        ("Article number", "A 1", "A 2", "row['Article number'] | slug"),
        ("EAN", "4006381", "4006382", "row.EAN"),
    ] {
        let (here, text) = drafted(&format!("{head},Prompt\n{first},Sunrise\n{second},Waterfall\n"));
        for field in [format!("id: \"{{{{ {id} }}}}\""), "prompt: \"{{ row.Prompt }}\"".to_owned()] {
            assert!(text.contains(&field), "{text}");
        }
        here.shotlist(&["run", "sheet.yaml", "--plan", "--strict"]).ends_with(0);
    }
}

#[test]
fn draft_names_the_sheet_of_a_workbook() {
    let here = Workspace::new().file("p.xlsx", include_bytes!("../../../examples/spring/products.xlsx"));
    here.write("mug.png", b"\x89PNG\r\n\x1a\n");
    here.shotlist(&["init", "--from", "p.xlsx", "--sheet", "Spring", "--model", "alpha-2"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("p.yaml")).expect("a manifest");
    insta::assert_snapshot!(line_of(&text, "for_each"), @r#"for_each: { file: "p.xlsx", sheet: "Spring" }"#);
    insta::assert_snapshot!(line_of(&text, "model: "), @"model: alpha-2");
    insta::assert_snapshot!(line_of(&text, "name: \""), @r#"name: "p-Spring""#);
    here.shotlist(&["run", "p.yaml", "--plan"]).fails_with("prompt-blank", 2);
    let refused = here.shotlist(&["init", "q.yaml", "--from", "p.xlsx", "--sheet", "Winter"]).ends_with(2);
    insta::assert_snapshot!(refused.line("Spring"), @"help: sheets: Spring");
}

#[test]
fn init_replaces_no_file_and_refuses_invalid_sheets() {
    let (here, text) = drafted("id,prompt\na,A dog\n");
    let refused = here.shotlist(&["init", "--from", "sheet.csv"]).ends_with(74).stderr;
    assert!(has_code(&refused, "file-exists"), "{refused}");
    assert_eq!(std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest"), text);
    let here =
        here.file("ragged.csv", "id,prompt\na,x\nb,y,z\n").file("empty.csv", "a,b\n").file("sub/other.csv", "a\n1\n");
    for (args, why) in [
        (["--from", "none.csv"].as_slice(), "none.csv"),
        (&["--from", "empty.csv"], "empty.csv"),
        (&["--from", "ragged.csv"], "ragged.csv, line 3"),
        (&["new.yaml", "--from", "../outside.csv"], "outside.csv"),
        (&["sub/new.yaml", "--from", "empty.csv"], "sub/new.yaml"),
        (&["--from", "sub/other.csv", "--model", "gamma"], "`gamma`"),
    ] {
        let args = [&["init"], args].concat();
        let refused = here.shotlist(&args).fails_with("sheet-invalid", 2).stderr;
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
    here.shotlist(&["init", "all.yaml", "--from", "sub/other.csv", "--model", "beta-2.0-lite"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("all.yaml")).expect("a manifest");
    insta::assert_snapshot!(line_of(&text, "for_each"), @r#"for_each: "sub/other.csv""#);
}

const NAMES: [&str; 14] = [
    "id",
    "Client",
    "client",
    "Project",
    "model",
    "duration",
    "size",
    "Aspect Ratio",
    "image",
    "Photo",
    "tags",
    "Prompt",
    "SKU",
    "face",
];
const CELLS: [&str; 14] = [
    "",
    " A ",
    "16:9",
    "3:4",
    "720x1280",
    "alpha-2",
    "beta-2.0-lite",
    "7",
    "5.0",
    "12",
    "https://x.example/a.jpg",
    "a.png",
    "A dog runs, and a cat",
    "日本",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Any sheet gives a manifest that loads. Only errors in cells are left to the plan.
    #[test]
    fn draft_of_any_sheet_is_valid_yaml(
        file in prop_oneof![Just("s".to_owned()), Just("日本".to_owned()), "[a-z]{150}"],
        names in proptest::collection::btree_set(prop_oneof![proptest::sample::select(&NAMES).prop_map(str::to_owned), "[ -~äß日]{1,12}"], 1..6),
        rows in proptest::collection::vec(proptest::collection::vec(proptest::sample::select(&CELLS), 6), 1..4),
    ) {
        let here = Workspace::new();
        let name = format!("{file}.csv");
        let mut sheet = csv::Writer::from_path(here.path(&name)).expect("a sheet");
        sheet.write_record(&names).expect("a head");
        for row in &rows {
            sheet.write_record(&row[..names.len()]).expect("a row");
        }
        sheet.flush().expect("written");
        // A blank name is no name, and invalid sheets are refused.
        if let Ok(Draft { text, .. }) = draft(here.root(), &name, None, None) {
            here.write("s.yaml", &text);
            let path = here.path("s.yaml");
            let loaded = manifest::load(&Options::new(&path), shotlist::catalog::Catalog::embedded());
            for diagnostic in &loaded.diagnostics {
                let is_of_the_text = matches!(
                    diagnostic.rule,
                    Rule::Yaml | Rule::KeyDuplicate | Rule::UnknownKey | Rule::Template | Rule::TemplateCycle
                        | Rule::IdInvalid | Rule::IdDuplicate
                );
                prop_assert!(!is_of_the_text, "{:?}: {}\n{text}", diagnostic.rule, diagnostic.message);
            }
        }
    }
}
