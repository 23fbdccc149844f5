//! `init --from`: which columns identify the rows, why others are unused, and names of spreadsheets in other places. Columns that a manifest does not read.

use crate::support::{Workspace, has_code, line_of};

fn drafted(sheet: &str) -> (Workspace, String) {
    let here = Workspace::new().file("sheet.csv", sheet);
    here.shotlist(&["init", "sheet.csv"]).ends_with(0);
    let text = std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest");
    (here, text)
}

/// An ID belongs to its row for good. A column with repeated cells needs a second column, and a voice-over is no ID.
#[test]
fn draft_finds_the_identifying_columns() {
    for (sheet, id) in [
        ("SKU,Language,Prompt\nM1,en,A mug\nM1,de,Ein Becher\nM2,en,A cup\n", "{{ row.SKU }}-{{ row.Language }}"),
        ("SKU,Format,Prompt\nM1,16:9,A mug\nM1,9:16,A mug\n", "{{ row.SKU }}-{{ row.Format | slug }}"),
        (
            "Scene,Shot,Visual,Voice-over\n1,1,A sea,Hello\n1,2,A gull,Hi\n2,1,A sun,Bye\n",
            "{{ row.Scene }}-{{ row.Shot }}",
        ),
        ("Product SKU,Prompt\nM1,A mug turns\nM2,A cup turns\n", "{{ row['Product SKU'] }}"),
        ("Asset,Prompt\nIMG_1,A mug turns\nIMG_2,A cup turns\n", "{{ row.Asset }}"),
        ("Speaker,Prompt\nAnna,A mug turns\nTom,A cup turns\n", "sheet-{{ row_number }}"),
        ("SKU,Prompt\nMug,A mug turns\nmug,A cup turns\n", "sheet-{{ row_number }}"),
    ] {
        let text = drafted(sheet).1;
        assert!(text.contains(&format!("- id: \"{id}\"\n")), "{text}");
    }
}

/// Each reason quotes the invalid cell. `-q` hides no reason.
#[test]
fn draft_gives_the_reason_for_each_unused_column() {
    let rows = |head: &str, first: &str, second: &str| {
        format!("Prompt,{head}\nA red mug turns slowly,{first}\nA blue cup turns slowly,{second}\n")
    };
    let mut told = String::new();
    for (head, first, second) in [
        ("SKU", "Mug", "mug"),
        ("SKU", "Mug", ""),
        ("Image Position", "1", "2"),
        ("End frame", "https://x.example/a.png", "https://x.example/b.png"),
        ("Photo", "a mug", "a cup"),
    ] {
        let here = Workspace::new().file("sheet.csv", rows(head, first, second));
        told += &here.shotlist(&["init", "-q", "sheet.csv"]).ends_with(0).stderr;
    }
    insta::assert_snapshot!(told, @r#"
    warning[columns-unused]: unused columns: `SKU` (`mug` repeats)
    warning[columns-unused]: unused columns: `SKU` (a cell is blank)
    warning[columns-unused]: unused columns: `Image Position` (not a field of a job)
    warning[columns-unused]: unused columns: `End frame` (`https://x.example/a.png` is for the end of a video, and images are for its start)
    warning[columns-unused]: unused columns: `Photo` (`a mug` is neither a URL nor an image file)
    "#);
    // One URL suffices: without the column, the videos would not start with their images.
    let here = Workspace::new().file("sheet.csv", rows("Image", "https://x.example/a.png", "picture"));
    here.shotlist(&["init", "sheet.csv"]).ends_with(0);
    here.shotlist(&["run", "sheet.yaml", "--plan"]).fails_with("image-not-a-url", 2);
    let head: Vec<String> = (0..300).map(|number| format!("x{number}")).collect();
    let sheet = format!("Prompt,{}\nA red mug turns slowly{}\n", head.join(","), ",7".repeat(300));
    let here = Workspace::new().file("sheet.csv", sheet);
    let warned = here.shotlist(&["init", "-q", "sheet.csv"]).ends_with(0).stderr;
    assert!(warned.trim_end().ends_with("`x19` (not a field of a job), and 280 more"), "{warned}");
    let text = std::fs::read_to_string(here.path("sheet.yaml")).expect("a manifest");
    assert!(text.ends_with("#   280 more: not used\n") && text.len() < 4_000, "{text}");
}

/// A row below the last video, or a second header.
#[test]
fn prompt_without_a_word_is_a_placeholder() {
    for prompt in ["2", "Total", "19,99 €", "—", "Prompt"] {
        let here = Workspace::new().file("sheet.csv", format!("id;Prompt\na;A red mug turns\nz;{prompt}\n"));
        here.shotlist(&["init", "sheet.csv"]).ends_with(0);
        let plan = here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0).shows("prompt-placeholder").stderr;
        assert!(plan.contains(&format!("the prompt is only `{prompt}`")), "{plan}");
    }
}

/// The user passes a spreadsheet, or the name of a missing manifest in its directory.
#[test]
fn spreadsheet_in_place_of_a_manifest_is_explained() {
    let here = Workspace::new().file("sheet.csv", "id,prompt\na,A dog runs\n");
    let mut told = String::new();
    let mut tell = |args: &[&str], code| told += &here.shotlist(args).ends_with(code).stderr;
    tell(&["run", "sheet.yaml", "--plan"], 2);
    tell(&["sheet.csv"], 2);
    tell(&["init", "new.xlsx"], 2);
    tell(&["init", "-q", "sheet.csv"], 0);
    tell(&["init", "sheet.csv"], 74);
    insta::assert_snapshot!(told, @r#"
    error[unreadable]: can't read manifest `sheet.yaml`: No such file or directory (os error 2)
    --> sheet.yaml
     = help: check the path; `shotlist init sheet.csv` writes a manifest

    error[manifest-invalid]: `sheet.yaml` has 1 error
      note: nothing was submitted; nothing was spent
    error: unrecognized subcommand 'sheet.csv'

      tip: `shotlist init SHEET` writes a manifest from a spreadsheet

    Usage: shotlist [OPTIONS] <COMMAND>

    For more information, try '--help'.
    error[sheet-invalid]: can't read `new.xlsx`: No such file or directory (os error 2)
      help: check the path
    error[file-exists]: `sheet.yaml` exists
      help: name another file: `shotlist init FILE --from sheet.csv`
    "#);
    assert!(!here.path("new.xlsx").exists());
}

/// The state of a row has many names. If some rows are approved, the others are questioned.
#[test]
fn rows_are_questioned_by_their_state() {
    let mut told = String::new();
    for (head, cells) in [
        ("Approval Kunde", ["ja", "nein", "offen"]),
        ("Ready?", ["x", "", "x"]),
        ("✅ Go", ["✅", "❌", "✅"]),
        ("Statut", ["🟢 Validé", "Brouillon", ""]),
        ("Stage", ["Idea", "Done", "Idea"]),
        ("Archived", ["true", "false", "false"]),
        ("核准状态", ["通过", "未通过", "待定"]),
        ("Owner", ["Anna", "", "Tom"]),
        ("In stock", ["yes", "no", "yes"]),
    ] {
        let row = |number: usize| format!("S{number},A mug turns slowly {number},{}\n", cells[number]);
        let text = drafted(&format!("SKU,Prompt,{head}\n{}{}{}", row(0), row(1), row(2))).1;
        told += &format!("{head}: {cells:?}\n");
        told.extend(text.lines().filter(|line| line.contains("exclude")).map(|line| format!("  {}\n", line.trim())));
    }
    insta::assert_snapshot!(told, @r#"
    Approval Kunde: ["ja", "nein", "offen"]
      # for_each: { file: "sheet.csv", exclude: [{ "Approval Kunde": "nein" }, { "Approval Kunde": "offen" }] }
    Ready?: ["x", "", "x"]
      # for_each: { file: "sheet.csv", exclude: [{ "Ready?": "" }] }
    ✅ Go: ["✅", "❌", "✅"]
      # for_each: { file: "sheet.csv", exclude: [{ "✅ Go": "❌" }] }
    Statut: ["🟢 Validé", "Brouillon", ""]
      # for_each: { file: "sheet.csv", exclude: [{ "Statut": "" }, { "Statut": "brouillon" }] }
    Stage: ["Idea", "Done", "Idea"]
      # for_each: { file: "sheet.csv", exclude: [{ "Stage": "done" }] }
    Archived: ["true", "false", "false"]
      # for_each: { file: "sheet.csv", exclude: [{ "Archived": "true" }] }
    核准状态: ["通过", "未通过", "待定"]
      for_each: { file: "sheet.csv", exclude: [{ "核准状态": "未通过" }] }
      # for_each: { file: "sheet.csv", exclude: [{ "核准状态": "未通过" }, { "核准状态": "待定" }] }
    Owner: ["Anna", "", "Tom"]
    In stock: ["yes", "no", "yes"]
    "#);
}

/// A column is known by a word of its name, or by its cells alone.
#[test]
fn columns_are_found_by_words_and_cells() {
    for (head, first, second, line) in [
        ("Runtime (sec)", "6 sec.", "~8s", "duration: \"{{ row['Runtime (sec)'] }}\""),
        ("Dur.", "00:00:05:00", "00:00:06:00", "duration: \"{{ row['Dur.'] }}\""),
        ("秒", "5秒", "8", "duration: \"{{ row['秒'] }}\""),
        ("Placement", "Reels 9:16", "Landscape 16:9", "shape: \"{{ row.Placement }}\""),
        ("Where", "Stories", "TikTok", "shape: \"{{ row.Where }}\""),
        ("aspect_ratio", "16x9", "9:16", "shape: \"{{ row.aspect_ratio }}\""),
        ("Still", "a.png", "b.png", "image_file: \"{{ row.Still }}\""),
        ("alpha-2", "x", "", "prompt: \"{{ row.Prompt }}\""),
    ] {
        let (_, text) = drafted(&format!("id,Prompt,{head}\na,A mug turns,{first}\nb,A cup turns,{second}\n"));
        assert!(text.lines().any(|it| it.trim().starts_with(line)), "{line}\n{text}");
    }
    // As the draft advises: the rows in question are no jobs any more.
    let (here, text) = drafted("id,Prompt,Status\na,A mug turns,🟢 Ready\nb,,Ready\nc,A cup turns,\n");
    let advised = text.lines().rfind(|line| line.trim().starts_with("# for_each")).expect("advice");
    let (line, advised) = (line_of(&text, "for_each: \""), advised.trim().trim_start_matches("# "));
    here.write("sheet.yaml", text.replacen(line, advised, 1));
    insta::assert_snapshot!(here.shotlist(&["run", "sheet.yaml", "--plan"]).ends_with(0).line("left out"), @"sheet.csv: 3 rows, 1 used; left out: row 3 (Prompt: ), row 4 (Status: )");
    // A negative prompt, a script without blanks, and products for sale.
    let negative = drafted("id,negative_prompt,prompt\na,blurry hands and text,A mug\nb,blurry,A cup\n").1;
    insta::assert_snapshot!(line_of(&negative, "prompt: "), @r#"prompt: "{{ row.prompt }}""#);
    let chinese = drafted("镜号,画面描述,平台\n1,清晨的茶园,抖音\n2,黄昏的湖,微信\n").1;
    insta::assert_snapshot!(line_of(&chinese, "prompt: "), @r#"prompt: "{{ row['画面描述'] }}""#);
    let shop = drafted("Handle,Variant SKU,Video prompt,Published\na,A1,A mug turns,TRUE\nb,B1,A cup turns,FALSE\n").1;
    insta::assert_snapshot!(line_of(&shop, "exclude: "), @r#"# for_each: { file: "sheet.csv", exclude: [{ "Published": "false" }] }"#);
}

#[test]
fn jobs_of_each_sheet_have_another_name() {
    let here = Workspace::new();
    let mut book = rust_xlsxwriter::Workbook::new();
    for (sheet, manifest) in [("春", "spring.yaml"), ("夏", "summer.yaml")] {
        book.add_worksheet()
            .set_name(sheet)
            .expect("a name")
            .write_row_matrix(0, 0, [["id", "prompt"], ["1", sheet]])
            .expect("cells");
        book.save(here.path("c.xlsx")).expect("a workbook");
        here.shotlist(&["init", manifest, "--from", "c.xlsx", "--sheet", sheet]).ends_with(0);
        let text = std::fs::read_to_string(here.path(manifest)).expect("a manifest");
        assert_eq!(line_of(&text, "name: \""), format!("name: \"c-{sheet}\""));
    }
}

/// A column is reported if its name and cells can only be the model, length, or shape, and nothing mentions it.
#[test]
fn unread_column_of_a_field_is_reported() {
    let told = |model: &str, more: &str, rows: &str| {
        let job = format!("id: \"{{{{ row.id }}}}\", model: {model}, prompt: x{more}, for_each: rows.csv");
        let here = Workspace::with_manifest(&format!("version: 1\ndefaults: {{ takes: 1 }}\njobs: [{{ {job} }}]\n"));
        here.write("rows.csv", rows);
        let help = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stderr;
        help.lines().find_map(|line| Some(line.split_once("help: write ")?.1.to_owned())).unwrap_or_default()
    };
    let rows = "id,Length (sec),Format,Model,note\na,8,Reel,X200,5\nb,6,16:9,X300,9:16\n";
    let (length, shape) = ("`duration: \"{{ row['Length (sec)'] }}\"`", "`shape: \"{{ row['Format'] }}\"`");
    assert_eq!(told("beta-2.0-lite", "", rows), format!("{length}, {shape}, or rename the columns"));
    // It always makes 12 s.
    assert_eq!(told("alpha-2", "", rows), format!("{shape}, or rename the columns"));
    assert_eq!(told("beta-2.0-lite", ", size: 1280x720", rows), format!("{length}, or rename the columns"));
    for read in [
        ", matrix: { duration: [5], size: [1280x720] }",
        ", tags: [\"{% set shot = row %}{{ shot.Format }}{{ shot['Length (sec)'] }}\"]",
        ", tags: [\"{{ row['Length (sec)'] }}\", \"{{ row.Format }}\"]",
        ", labels: { a: \"{{ row['Length (sec)'] }}\" }, extra: { b: [\"{{ row.Format }}\"] }",
        ", tags: [\"{% for column in row %}{{ row[column] }}{% endfor %}\"]",
        // A branch that no row takes today.
        ", tags: [\"{% if row.note == '0' %}{{ row.Format }}{{ row['Length (sec)'] }}{% endif %}\"]",
        ", duration: 5, shape: '16:9'",
    ] {
        assert_eq!(told("beta-2.0-lite", read, rows), "", "{read}");
    }
    // Other things have a length, a size, a model, or a face, too.
    for column in [
        "Music dur,5",
        "Face,white dial",
        "Dimensions,1200x600",
        "Lens,landscape",
        "Duration,3 months",
        "Length,120 cm",
    ] {
        let (name, cell) = column.split_once(',').expect("two parts");
        assert_eq!(told("beta-2.0-lite", "", &format!("id,{name}\na,{cell}\n")), "", "{column}");
    }
    // None of these lengths is possible: `init` makes no field of them, either.
    assert_eq!(told("beta-2.0-lite", "", "id,Duration\na,60\nb,90\n"), "");
}

/// Rows of a list need not have the same names, nor texts as names.
#[test]
fn unread_names_of_a_list_are_reported() {
    let planned = |rows: &str, prompt: &str| {
        let job = format!("id: \"{{{{ row.id }}}}\", model: beta-2.0-lite, prompt: \"{prompt}\", for_each: [{rows}]");
        let here = Workspace::with_manifest(&format!("version: 1\njobs: [{{ {job} }}]\n"));
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stderr
    };
    let later = planned("{ id: a }, { id: b, duration: 8 }", "x {{ row.id }}");
    assert!(has_code(&later, "column-unread"), "{later}");
    let rows = "{ id: a, duration: 8 }, { id: b, duration: 6, note: n }, { id: c, duration: 7 }";
    let read = "x {{ row.id }}{% for name in row if name == 'note' %} of {{ row['dura' ~ 'tion'] }} s{% endfor %}";
    assert_eq!(planned(rows, read), "");
    assert_eq!(
        planned("{ 1: x, id: a }, { true: y, id: b }", "{{ row[1] | default('') }}{{ row[true] | default('') }} z"),
        ""
    );
}

/// A word that no row has leaves nothing out; one that is like another word is a slip.
#[test]
fn misspelled_value_of_exclude_is_reported() {
    for (excluded, is_told) in
        [("dnoe", true), ("Done ", false), ("archived", false), ("gone", true), ("2026-11-30", false)]
    {
        let here = Workspace::with_manifest(&format!(
            "version: 1\njobs: [{{ id: \"{{{{ row.id }}}}\", model: alpha-2, prompt: 'A {{{{ row.id }}}}', for_each: {{ file: rows.csv, exclude: [{{ Stage: '{excluded}' }}] }} }}]\n"
        ));
        here.write("rows.csv", "id,Stage\na,done\nb,2026-11-29\n");
        let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
        assert_eq!(has_code(&ended.stderr, "column-unknown"), is_told, "{excluded}: {}", ended.stderr);
    }
}
