//! `init --from`: a manifest for a sheet that somebody has.

use proptest::prelude::*;
use shotlist::manifest::draft::draft;
use shotlist::manifest::{self, Options};

use crate::support::Workspace;

fn drafted(sheet: &str) -> (Workspace, String) {
    let here = Workspace::new().file("sheet.csv", sheet);
    here.shotlist(&["init", "--from", "sheet.csv"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest");
    (here, text)
}

#[test]
fn the_columns_of_a_sheet_are_guessed_and_each_guess_is_told() {
    let sheet = "Client;SKU;Product Name;Length (s);Size;Video Prompt;Price\n\
                 Acme;M 1;Mug;5;720x1280;A blue mug turns slowly on marble;9,99\n\
                 Beta;L 2;Lamp;8;720x1280;A brass lamp lights up a dark desk;19,99\n";
    let (here, text) = drafted(sheet);
    insta::assert_snapshot!(text, @r#"
        # yaml-language-server: $schema=shotlist.schema.json
        # Made of sheet.csv: a job for each of its 2 rows. What the columns seem to mean is a guess, and stands beside each.
        version: 1
        name: "sheet"

        # The most that one run may newly spend, in dollars. Without it, a run asks; with it, it need not.
        # budget: { run: 10.00 }

        defaults:
          model: beta-2.0-lite-fast # it takes most of what the sheet has, for least: alpha-2 $0.90 a video, beta-2.0-lite $0.75 a second, beta-2.0-lite-fast $0.65 a second

        jobs:
          - id: "{{ row.SKU | slug }}"
            # What was paid is known by the id: a row whose `SKU` changes is bought again.
            for_each: "sheet.csv"
            prompt: "{{ row['Video Prompt'] }}"
            duration: "{{ row['Length (s)'] }}"
            size: "{{ row.Size }}"
            labels: { client: "{{ row.Client }}" }
            # in no text yet: `Product Name`, `Price`
        "#);
    let plan = here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0).stdout;
    assert!(plan.contains("2 jobs to submit for $8.45"), "{plan}");
    // A guess is no consent: without a limit and without a terminal nothing is bought.
    here.shotlist(&["run", "sheet.yaml", "--base-url", "http://127.0.0.1:9"]).env("SHOTLIST_API_KEY", "k").ends_with(3);
}

#[test]
fn a_sheet_without_a_prompt_an_id_or_a_length_that_fits_still_gives_a_manifest() {
    let sheet = "Name,Colour,Seconds,Aspect,Photo\nmug,blue,7,16:9,mug.png\nmug,red,7,9:16,none.png\n";
    let (here, text) = drafted(sheet);
    insta::assert_snapshot!(text, @r#"
        # yaml-language-server: $schema=shotlist.schema.json
        # Made of sheet.csv: a job for each of its 2 rows. What the columns seem to mean is a guess, and stands beside each.
        version: 1
        name: "sheet"

        # The most that one run may newly spend, in dollars. Without it, a run asks; with it, it need not.
        # budget: { run: 10.00 }

        defaults:
          model: alpha-2 # it takes most of what the sheet has, for least: alpha-2 $0.90 a video, beta-2.0-lite $0.75 a second, beta-2.0-lite-fast $0.65 a second

        jobs:
          - id: "{{ row.Colour }}"
            # What was paid is known by the id: a row whose `Colour` changes is bought again.
            for_each: "sheet.csv"
            # No column seems to be a prompt: write the sentence that these words belong into.
            prompt: "{{ row.Name }}, {{ row.Colour }}"
            # duration: "{{ row.Seconds }}" # this model always makes 12 s
            aspect_ratio: "{{ row.Aspect }}"
            # image_file: "{{ row.Photo }}" # not all of these pictures are in this folder
        "#);
    here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0);
}

#[test]
fn a_sheet_that_names_models_asks_for_what_each_row_says() {
    let sheet = "id,model,text,aspect_ratio,size,duration\n\
                 a,alpha-2,A dog runs,9:16,,\nb,beta-2.0-lite,A cat sleeps,,720x1280,10\nc,,A cow stands,,,\n";
    let (here, _) = drafted(sheet);
    let plan = here.shotlist(&["run", "sheet.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
    let plan: serde_json::Value = serde_json::from_str(&plan).expect("a plan");
    let models: Vec<_> = plan["jobs"].as_array().expect("jobs").iter().map(|job| job["model"].clone()).collect();
    assert_eq!(models, ["alpha-2", "beta-2.0-lite", "beta-2.0-lite-fast"]);
}

/// What only looks like a field costs money: a time of day is no shape, a section no length, a pack no size, and a price no id.
#[test]
fn what_only_looks_like_a_field_is_none() {
    let sheet = "Shot #,Time,Section,Pack,Price,Due,Client,Project\n\
                 1,10:30,7,2x3,9.99,2026-12-01,Acme,Spring\n1,11:15,8,4x6,8.99,2026-12-02,Acme,Autumn\n";
    let (here, text) = drafted(sheet);
    let jobs = text.split_once("jobs:\n").expect("jobs").1;
    insta::assert_snapshot!(jobs, @r#"
        - id: "sheet-{{ row_number }}"
          # What was paid is known by the id: no column has another value in each row, so a row that is put in
          # above others makes them all new. A column of ids would keep them.
          for_each: "sheet.csv"
          # No column seems to be a prompt: write the sentence that these words belong into.
          prompt: "{{ row['Shot #'] }}, {{ row.Time }}, {{ row.Section }}, {{ row.Pack }}, {{ row.Price }}, {{ row.Due }}"
          labels: { client: "{{ row.Client }}", project: "{{ row.Project }}" }
        "#);
    here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0);
}

#[test]
fn nothing_is_replaced_and_what_is_no_sheet_is_refused() {
    let (here, text) = drafted("id,prompt\na,A dog\n");
    let refused = here.shotlist(&["init", "--from", "sheet.csv"]).ends_with(74).stderr;
    assert!(refused.contains("sheet.yaml exists, and is left as it is"), "{refused}");
    assert_eq!(std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest"), text);
    let here = here.file("empty.csv", "a,b\n").file("sub/other.csv", "a\n1\n");
    for (args, why) in [
        (["--from", "none.csv"].as_slice(), "none.csv can't be read: No such file"),
        (&["--from", "empty.csv"], "empty.csv has a header and no rows"),
        (&["new.yaml", "--from", "../outside.csv"], "can't be read"),
        (&["sub/new.yaml", "--from", "empty.csv"], "empty.csv is not in the folder of sub/new.yaml or below"),
        (&["--from", "sub/other.csv", "--model", "gamma"], "there is no model `gamma`"),
    ] {
        let args = [&["init"], args].concat();
        let refused = here.shotlist(&args).ends_with(2).stderr;
        assert!(refused.contains(why), "{args:?}: {refused}");
    }
    here.shotlist(&["init", "all.yaml", "--from", "sub/other.csv", "--model", "beta-2.0-lite"]).ends_with(0);
    assert!(
        std::fs::read_to_string(here.path("all.yaml")).expect("a manifest").contains("for_each: \"sub/other.csv\"")
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// Whatever the columns are called, the text is a manifest, and its templates can be read.
    #[test]
    fn any_names_of_columns_give_templates_that_can_be_read(
        names in proptest::collection::btree_set("[ -~äß日]{1,12}", 1..5),
        cells in proptest::collection::vec("[a-z0-9:x]{0,8}", 5),
    ) {
        let here = Workspace::new();
        let mut sheet = csv::Writer::from_path(here.root().join("s.csv")).expect("a sheet");
        sheet.write_record(&names).expect("a head");
        sheet.write_record(&cells[..names.len()]).expect("a row");
        sheet.flush().expect("written");
        // A name of blanks alone is none, and a sheet may be no sheet: that is told.
        if let Ok(text) = draft(here.root(), "s.csv", None) {
            let here = here.file("s.yaml", &text);
            let path = here.root().join("s.yaml");
            let loaded = manifest::load(&Options::of(&path), shotlist::catalog::Catalog::embedded());
            for finding in &loaded.findings {
                let rule = serde_json::to_value(finding.rule).expect("a rule");
                prop_assert!(rule != "template" && rule != "syntax" && rule != "unknown_key", "{}\n{text}", finding.message);
            }
        }
    }
}
