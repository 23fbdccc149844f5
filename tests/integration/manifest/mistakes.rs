//! Mistakes that people made, and the diagnostics of each: location, fault, and help.

use std::fmt::Write as _;

use crate::support::{Workspace, has_code};

/// Each mistake by its name, with the manifest that has it.
const MISTAKES: &[(&str, &str)] = &[
    ("a workbook", "jobs: [{ id: \"{{ row.id }}\", for_each: book.xlsx, prompt: x }]"),
    (
        "a sheet's link",
        "jobs: [{ id: \"{{ row.id }}\", for_each: \"https://docs.google.com/spreadsheets/d/1\", prompt: x }]",
    ),
    (
        "words after a comma in braces",
        "jobs: [{ id: \"{{ row.id }}\", for_each: [\n  { id: a, text: a mug, white }\n], prompt: \"{{ row.text }}\" }]",
    ),
    ("fields without a value", "budget:\njobs:\n- id: a\n  duration: #8\n  prompt: x\n- id: b\n  prompt: y\n  size:"),
    ("UTF-16", "jobs: [{ id: \"{{ row.id }}\", for_each: utf16.csv, prompt: x }]"),
    ("a path of Windows in double quotes", "jobs: [{ id: a, prompt: \"On the label: D:\\notes\" }]"),
    ("a file of Windows in double quotes", "jobs: [{ id: a, prompt_file: \"texts\\tram.md\" }]"),
    ("an escape for a separator of paragraphs", "jobs: [{ id: a, prompt_file: \"E:\\Projects\\a.txt\" }]"),
    ("line breaks in double quotes", "jobs: [{ id: a, prompt: \"Wide shot.\\nNo people.\\n\\nDusk\" }]"),
    ("keys in capitals", "Jobs:\n  - ID: a\n    Model: alpha-2\n    prompt: x"),
    ("an ID in capitals", "jobs: [{ ID: a, prompt: x, model: Alpha-2 }]"),
    ("a comment of JSON", "jobs: [{ // the first\n  id: a, prompt: x }]"),
    ("a Cyrillic letter in a key", "j\u{43e}bs: [{ id: a, prompt: x }]"),
    ("a Cyrillic letter in a word", "jobs: [{ id: a, prompt: x, model: \u{430}lpha-2 }]"),
    ("no value of jobs", "jobs:"),
    ("an ID without a value", "jobs:\n  - id:\n    prompt: x\n  - id: b"),
    (
        "a matrix whose jobs have one ID",
        "jobs: [{ id: a, prompt: \"{{ x }} sea\", matrix: { x: [1, 2], model: [alpha-2, beta-2.0-lite] } }]",
    ),
    ("a list of models", "jobs: [{ id: a, prompt: x, model: [alpha-2, beta-2.0-lite] }]"),
    ("a list of faces", "faces: [anna]\njobs: [{ id: a, prompt: x, model: beta-2.0-lite, face: anna }]"),
    ("labels without names", "jobs: [{ id: a, prompt: x, labels: acme }, { id: b, prompt: y, labels: [acme] }]"),
    ("prompts in place of jobs", "jobs:\n  - A cat sleeps"),
    ("a face without a declaration", "jobs: [{ id: a, prompt: x, model: beta-2.0-lite, face: anna }]"),
    ("a second job without a dash", "jobs:\n  - id: a\n    prompt: x\n\n    id: b\n    prompt: y"),
    ("a field beside the jobs", "model: alpha-2\njobs: [{ id: a, prompt: x }]"),
    ("another word for variables", "variables: { brand: Acme }\njobs: [{ id: a, prompt: \"{{ brand }} mug\" }]"),
    ("another word for the ID", "jobs: [{ name: a, prompt: x }]"),
    ("rows of Ansible", "jobs: [{ id: \"{{ item }}\", prompt: x, with_items: [a, b] }]"),
    (
        "a line of a text in the column of its key",
        "jobs:\n  - id: a\n    prompt: A red carpet\n    in the rain\n    # a note\n    tags: [x]\n",
    ),
    ("a path of a prompt", "jobs: [{ id: a, prompt: prompts/mug.txt }, { id: b, prompt: \"!include mug.txt\" }]"),
    (
        "placeholders of other languages",
        "jobs: [{ id: a, prompt: \"A {product}\" }, { id: b, prompt: \"%s\" }, { id: c, prompt: \"[insert name] runs\" }]",
    ),
    ("a comment in a text", "jobs:\n  - id: a\n    prompt: |\n      A dog runs\n      # keep it short"),
    (
        "durations in a list",
        "jobs: [{ id: a, prompt: x, duration: [5, 8] }, { id: b, prompt: y, duration: \"0:08\" }, { id: c, prompt: z, duration: \".5\" }]",
    ),
    ("a shape that is denied", "jobs: [{ id: a, prompt: x, shape: \"not 16:9\" }]"),
    ("an ID that is set twice", "jobs:\n  - id: a\n    id: b\n    prompt: x"),
    ("a key without its colon", "defaults\njobs:\n  - id: a\n    prompt: x"),
    (
        "no image at a URL",
        "jobs: [{ id: a, prompt: x, image: \"https://x.example/{{ '' }}\" }, { id: b, prompt: y, image: \"https://x.example/a.png;https://x.example/b.png\" }, { id: c, prompt: z, image: \"http://localhost:8000/a.png\" }]",
    ),
    ("a budget without a span", "budget: $50\njobs: [{ id: a, prompt: x }]"),
    ("null for jobs", "jobs: null"),
    ("a face that is declared twice", "faces: { 7: { review: pending }, '7': { review: approved } }\njobs: []"),
    ("a label that is set twice", "jobs: [{ id: a, prompt: x, labels: { 7: a, '7': b } }]"),
    ("a word of another language", "jobs: [{ id: a, prömpte: x }]"),
    ("a key in another script", "jobs: [{ id: a, prompt: x, 画面描述: y }]"),
    ("a Cyrillic letter in a short key", "jobs: [{ \u{456}d: a, prompt: x }]"),
    ("a wide colon", "name：spring\njobs: [{ id: a, prompt: x }]"),
    ("a dash of a word processor", "jobs:\n  – id: a\n    prompt: x"),
    ("a blank as wide as a letter", "jobs:\n  - id: a\n\u{3000}\u{3000}  prompt: x"),
    ("no space behind a colon", "jobs:\n  - id: a\n    takes:2\n    prompt: x"),
    ("no space in a whole job", "jobs:\n  - id:a\n    prompt:x"),
    (
        "one file in two compositions of accents",
        "jobs: [{ id: a, prompt: x, file: \"caf\u{e9}.mp4\" }, { id: b, prompt: y, file: \"Cafe\u{301}.mp4\" }]",
    ),
    (
        "a file and a directory in two compositions of accents",
        "jobs: [{ id: a, prompt: x, file: \"caf\u{e9}.mp4\" }, { id: b, prompt: y, file: \"cafe\u{301}.mp4/b.mp4\" }]",
    ),
    ("an invisible character in a key", "jobs: [{ id: a, \u{feff}prompt: x, model: alpha-2 }]"),
    ("an invisible character in a word", "jobs: [{ id: a, prompt: x, model: \"alpha-2\u{2060}\" }]"),
    ("a tag of another program", "vars: { day: !!timestamp 2026-11-27 }\njobs: [{ id: a, prompt: x }]"),
    ("a number beyond all numbers", "jobs: [{ id: a, prompt: x, extra: { weight: -2.5E+999 } }]"),
    ("a number with a zero in front", "jobs: [{ id: a, model: beta-2.0-lite, prompt: x, duration: 07 }]"),
    ("Latin-1", "jobs: [{ id: \"{{ row.id }}\", for_each: latin1.csv, prompt: x }]"),
    ("separated by bars", "jobs: [{ id: \"{{ row.id }}\", for_each: bars.csv, prompt: x }]"),
    ("JSON lines that are none", "jobs: [{ id: \"{{ row.id }}\", for_each: bad.jsonl, prompt: x }]"),
    ("typographic quotes", "jobs:\n  - id: a\n    aspect_ratio: “9:16”\n    prompt: x"),
    ("typographic quotes and a colon", "jobs:\n  - id: a\n    prompt: “A cat: the movie”"),
    ("a no-break space behind a colon", "jobs:\n  - id: a\n    duration:\u{a0}12\n    prompt: x"),
    ("a no-break space as indent", "jobs:\n  - id: a\n\u{a0}   prompt: x"),
    ("quotes inside quotes", "jobs:\n  - id: a\n    prompt: \"He says \"hello\"\""),
    ("an apostrophe inside apostrophes", "jobs:\n  - id: a\n    prompt: 'It's'"),
    ("text behind a quote", "jobs:\n  - id: a\n    prompt: \"Golden hour\" over the bay\n    tags: [x]"),
    ("a template without quotes", "vars: { brand: x }\njobs:\n  - id: a\n    prompt: {{ brand }} presents"),
    ("a wrong indent", "jobs:\n  - id: a\n      prompt: x"),
    ("a number with a unit", "jobs: [{ id: a, model: beta-2.0-lite, prompt: x, duration: 5s }]"),
    ("a number with a part", "jobs: [{ id: a, model: beta-2.0-lite, prompt: x, duration: 7.5 }]"),
    ("a number in words", "jobs: [{ id: a, prompt: x, takes: three }]"),
    (
        "numbers of a sheet",
        "jobs: [{ id: \"{{ row.id }}\", for_each: numbers.csv, model: beta-2.0-lite, prompt: \"{{ row.id }}\", duration: \"{{ row.d }}\" }]",
    ),
    ("a tag of YAML", "jobs:\n  - id: a\n    prompt: !important x"),
    (
        "a column with a blank",
        "jobs: [{ id: \"{{ row.id }}\", for_each: blank.csv, prompt: \"{{ row.Prompt Text }}\" }]",
    ),
    (
        "an unclosed brace behind a closed one",
        "vars: { brand: x }\njobs: [{ id: \"{{ row.id }}\", for_each: blank.csv, prompt: \"{{row.id }} by {{ brand }\" }]",
    ),
    ("an unknown filter", "jobs: [{ id: \"{{ row.id | slugify }}\", for_each: blank.csv, prompt: x }]"),
    ("a budget without a name", "budget: 50\njobs: [{ id: a, prompt: x }]"),
    (
        "names of other tools",
        "budget: { total: 50 }\njobs: [{ id: a, prompt: x, seconds: 5, resolution: 720p, seed: 1 }]",
    ),
    ("a lone dash", "jobs:\n  - { id: a, prompt: x }\n  -"),
    ("a text that a comment cuts", "jobs:\n  - id: a\n    prompt: A poster saying #1 in town"),
    ("a placeholder of another tool", "vars: { brand: x }\njobs: [{ id: a, prompt: \"a {brand} mug\" }]"),
    ("templates in cells", "jobs: [{ id: \"{{ row.id }}\", for_each: cells.csv, prompt: \"{{ row.p }}\" }]"),
    (
        "an empty cell in a prompt",
        "jobs: [{ id: \"{{ row.id }}\", for_each: holes.csv, prompt: \"a {{ row.color }} {{ row.thing }}\" }]",
    ),
    ("the same twice", "jobs: [{ id: a, prompt: same }, { id: b, prompt: same }]"),
    ("another ending", "jobs: [{ id: a, prompt: x, file: a.mov }]"),
    ("a page for an image", "jobs: [{ id: a, prompt: x, image: \"https://drive.google.com/file/d/1/view\" }]"),
    ("a blank in an address", "jobs: [{ id: a, prompt: x, image: \"https://cdn.example/a b.png\" }]"),
    ("an address for a file", "jobs: [{ id: a, prompt: x, image_file: \"https://cdn.example/a.png\" }]"),
    ("no picture", "jobs: [{ id: a, prompt: x, image_file: \"\" }]"),
    ("a picture that is not there", "jobs: [{ id: a, prompt: x, image_file: frames/a.png }]"),
    ("a directory for a picture", "jobs: [{ id: a, prompt: x, image_file: . }]"),
    ("a link in place of a sheet", "jobs: [{ id: \"{{ row.id }}\", for_each: \"Spring shots.gsheet\", prompt: x }]"),
    ("tabs", "jobs:\n\t- id: a"),
    ("labels as a list", "jobs: [{ id: a, prompt: x, labels: [acme] }]"),
    (
        "labels that no report can have",
        "jobs: [{ id: a, prompt: x, labels: { day: monday, \"a b\": x, c: { d: e } } }]",
    ),
    (
        "a limit for a label without its value",
        "budget: { labels: { client: { month: 5 } } }\njobs: [{ id: a, prompt: x }]",
    ),
    (
        "a limit in two spellings",
        "budget: { labels: { n: { 7: { day: 1 }, \"7\": { day: 9 } } } }\njobs: [{ id: a, prompt: x }]",
    ),
    (
        "a limit for a misspelt label",
        "budget: { labels: { client: { acmee: { day: 1 } } } }\njobs: [{ id: a, prompt: x, labels: { client: acme } }]",
    ),
    (
        "a limit for a misspelt name of a label",
        "budget: { labels: { clinet: { acme: { day: 1 } } } }\njobs: [{ id: a, prompt: x, labels: { client: acme } }]",
    ),
    ("moved as a mapping", "jobs: [{ id: a, prompt: x }]\nmoved: { b: a }"),
    (
        "moves that lead nowhere",
        "jobs: [{ id: hero, prompt: x }, { id: b, prompt: y }]\nmoved: [{ from: a, to: herp }, { from: b, to: hero }, { from: c, to: hero }, { from: c, to: b }, { form: a }]",
    ),
    (
        "a move to a misspelt id",
        "jobs: [{ id: hero, prompt: x }]\nmoved: [{ from: a, to: hreo }, { from: b, to: hreo }]",
    ),
    ("a decimal with a comma", "budget: { run: 12,50 }\njobs: [{ id: a, prompt: x }]"),
    (
        "a cell without braces",
        "jobs: [{ id: \"{{ row.id }}\", for_each: { file: latin1.csv, encoding: windows-1252 }, prompt: row.p }]",
    ),
    ("a block of code from a chat", "```yaml\nversion: 1\njobs: [{ id: a, prompt: x, model: alpha-2 }]\n```"),
    ("the end of a block of code", "version: 1\njobs: [{ id: a, prompt: x, model: alpha-2 }]\n```"),
    ("a rich text", "{\\rtf1\\ansi {\\fonttbl\\f0\\fswiss Helvetica;}\n\\f0\\fs24 version: 1\\\n}"),
    ("a text that is not indented", "jobs:\n  - id: a\n    prompt: |\n    A dog runs\n  - id: b\n    prompt: x"),
    ("a text with a colon that is not indented", "jobs:\n  - id: a\n    prompt: >\n    A dog runs: fast"),
    ("several keys on one line", "jobs:\n  - id: a, model: alpha-2, prompt: A dog runs"),
    ("a key one column to the left", "jobs:\n  - id: a\n    takes: 2\n   prompt: A dog runs"),
    ("a template that is not closed", "vars: { brand: x }\njobs: [{ id: a, prompt: \"A dog by {{ brand\" }]"),
    (
        "a cell in half the braces",
        "jobs: [{ id: \"{row.id}\", for_each: { file: latin1.csv, encoding: windows-1252 }, prompt: x }]",
    ),
    (
        "a place for a word",
        "jobs: [{ id: a, prompt: \"[PRODUCT] on a table\" }, { id: b, prompt: \"a ${surface} mug\" }]",
    ),
    ("a text that is none", "jobs: [{ id: a, prompt: Lorem ipsum dolor }, { id: b, prompt: … }]"),
    ("defaults in the list of jobs", "jobs:\n  - defaults: { model: alpha-2 }\n  - { id: a, prompt: x }"),
    (
        "a cell that is multiplied",
        "jobs: [{ id: \"{{ row.id }}\", for_each: count.csv, prompt: x, takes: \"{{ row.n * 2 }}\" }]",
    ),
    (
        "a cell that is compared",
        "jobs: [{ id: \"{{ row.id }}\", for_each: count.csv, prompt: \"{% if 1 < row.n %}x{% else %}y{% endif %}\" }]",
    ),
    ("a quote within quotes", "jobs: [{ id: \"{{ row.id }}\", for_each: quoted.csv, prompt: \"{{ row.p }}\" }]"),
    (
        "a quote that swallows rows",
        "jobs: [{ id: \"{{ row.id }}\", for_each: swallowed.csv, prompt: \"{{ row.p }}\" }]",
    ),
    (
        "a row of sums, and the header again",
        "jobs: [{ id: \"{{ row_number }}\", for_each: sums.csv, prompt: \"{{ row.p }} turns\" }]",
    ),
    ("an option of another tool", "jobs: [{ id: a, prompt: \"A kite --ar 9:16\" }]"),
    ("a field in a text", "jobs:\n  - id: a\n    prompt: |\n      A kite\n      duration: 8"),
    ("damaged letters", "jobs: [{ id: a, prompt: Un caf\u{c3}\u{a9} }]"),
    ("a word for later", "jobs: [{ id: a, prompt: A TODO turns }]"),
    (
        "a limit beside another spelling",
        "budget: { labels: { client: { acme: { day: 9 } } } }\njobs: [{ id: a, prompt: x, labels: { client: acme } }, { id: b, prompt: y, labels: { client: Acme } }]",
    ),
    (
        "an axis that sets nothing",
        "jobs: [{ id: \"a-{{ seconds }}\", prompt: \"{{ seconds }} kites\", matrix: { seconds: [5, 10] } }]",
    ),
    ("three braces", "vars: { brand: x }\njobs: [{ id: a, prompt: \"A {{{ brand }}} mug\" }]"),
    ("a size with blanks", "jobs: [{ id: a, prompt: x, model: beta-2.0-lite, size: 720 x 1280 }]"),
    ("words of other tools", "jobs: [{ id: a, text: A kite, variations: 2 }]"),
    (
        "versions that were not merged",
        "jobs:\n<<<<<<< HEAD\n  - { id: a, prompt: x }\n=======\n  - { id: b, prompt: x }\n>>>>>>> main",
    ),
    ("no space after a colon", "jobs:\n  - id: a\n    prompt: x\n    prompt_file:p.txt"),
    ("commas of full width", "jobs: [{ id: a， prompt: x }]"),
    ("a path of Windows in quotes", "jobs: [{ id: a, prompt: x, image_file: \"C:\\users\\x.png\" }]"),
    (
        "documents in place of texts",
        "jobs:\n  - { id: a, prompt_file: p.rtf }\n  - { id: b, prompt_file: page.txt }\n  - { id: c, prompt_file: p.docx }\n  - { id: d, prompt_file: p.pdf }\n  - { id: \"{{ row.text }}\", for_each: list.txt, prompt: x }\n  - { id: \"{{ row_number }}\", for_each: page.csv, prompt: x }",
    ),
    ("moves in a circle", "jobs: [{ id: a, prompt: x }]\nmoved: [{ from: b, to: c }, { from: c, to: b }]"),
];

fn directory() -> Workspace {
    Workspace::new()
        .file("book.xlsx", b"PK\x03\x04xx")
        .file("utf16.csv", b"\xff\xfei\0d\0")
        .file("latin1.csv", b"id,p\na,caf\xe9\n")
        .file("bars.csv", "id|p\na|b\n")
        .file("bad.jsonl", "{\"id\": \"a\"}\nnot JSON\n")
        .file("numbers.csv", "id;d\na;\"7,5\"\nb;5.0\nc;five\n")
        .file("blank.csv", "id,Prompt Text\na,x\n")
        .file("holes.csv", "id,color,thing\na,red,mug\nb,,mug\nc,blue,\nd, ,tray\n")
        .file("count.csv", "id,n\na,2\n")
        .file("quoted.csv", "id,p\na,\"A \"shiny\" mug\"\n")
        .file("swallowed.csv", "id,p\na,\"A mug\nb,A lamp\nc,\"A chair\"\nd,A vase\n")
        .file("sums.csv", "id,p\na,A mug\nid,p\nTotal,1 mug\n")
        .file("p.rtf", "{\\rtf1\\ansi A kite}")
        .file("page.txt", "\u{feff}\n<!DOCTYPE html>\n<html>Sign in</html>")
        .file("p.docx", b"PK\x03\x04xx")
        .file("p.pdf", "%PDF-1.4\n")
        .file("list.txt", "{\\rtf1\\ansi A kite}\n")
        .file("page.csv", "<table><tr><td>id</td></tr></table>")
        .file("cells.csv", "id,p\na,{{ brand }} mug\nb,#REF!\nc,n/a\n")
}

#[test]
fn every_mistake_is_reported_with_its_place_and_its_fix() {
    let here = directory();
    let mut told = String::new();
    for (name, manifest) in MISTAKES {
        let is_whole = ["version: 1", "{\\rtf"].iter().any(|sign| manifest.contains(sign));
        let beginning = if is_whole { "" } else { "version: 1\ndefaults: { model: alpha-2 }\n" };
        here.write("m.yaml", format!("{beginning}{manifest}\n"));
        let ended = here.shotlist(&["run", "m.yaml", "--plan"]).ends();
        let diagnostics = ended.stderr.split("error[manifest-invalid]").next().expect("diagnostics").trim_end();
        writeln!(told, "## {name} (exit {})\n{diagnostics}\n", ended.code.expect("a code")).expect("a string");
    }
    insta::assert_snapshot!(told);
}

/// After an edit by the help, no row with the cell is bought again.
#[test]
fn guarded_cell_keeps_the_paid_prompts() {
    let here = directory();
    let prompts = |color: &str| {
        let prompt = format!("a {color} mug for {{{{ row.id }}}}");
        here.write(
            "m.yaml",
            format!("version: 1\njobs: [{{ id: \"{{{{ row.id }}}}\", for_each: holes.csv, model: alpha-2, prompt: \"{prompt}\" }}]\n"),
        );
        let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0);
        let told = has_code(&plan.stderr, "prompt-empty-cell");
        let plan: serde_json::Value = serde_json::from_str(&plan.stdout).expect("JSON");
        let jobs = plan["jobs"].as_array().expect("jobs").clone();
        (
            told,
            jobs.iter().map(|job| job["request"]["prompt"].as_str().expect("a prompt").to_owned()).collect::<Vec<_>>(),
        )
    };
    let (told, before) = prompts("{{ row.color }}");
    let (told_of_mended, mended) = prompts("{% if row.color | trim %}{{ row.color }}{% endif %}");
    assert!(told && !told_of_mended);
    assert_eq!((&before[0], &before[2]), (&mended[0], &mended[2]), "rows that have the cell");
    assert_eq!((&*mended[1], &*mended[3]), ("a  mug for b", "a  mug for d"), "an empty cell, and one of a blank");
}

#[test]
fn unreadable_manifest_gets_help() {
    let here = Workspace::new()
        .file("utf16.yaml", b"\xff\xfev\0")
        .file("latin1.yaml", b"name: caf\xe9")
        .file("directory/x", "");
    for (path, told) in [
        ("nowhere.yaml", "`shotlist init nowhere.yaml`"),
        ("directory", "directory"),
        ("utf16.yaml", "UTF-16"),
        ("latin1.yaml", "UTF-8"),
    ] {
        let ended = here.shotlist(&["run", path, "--plan"]).ends_with(2).shows("unreadable");
        assert!(ended.stderr.contains(told), "{path}: {}", ended.stderr);
    }
}

#[test]
fn probable_slip_stops_a_run_only_on_request() {
    let manifest =
        "version: 1\njobs: [{ id: a, model: alpha-2, prompt: same }, { id: b, model: alpha-2, prompt: same }]\n";
    let here = Workspace::with_manifest(manifest);
    here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    let strict = here.shotlist(&["run", "m.yaml", "--plan", "--strict"]).ends_with(2);
    assert!(has_code(&strict.stderr, "same-request"), "{}", strict.stderr);
    // Of a job that is not selected nothing is at stake.
    here.shotlist(&["run", "m.yaml", "--plan", "--strict", "--select", "a"]).ends_with(0);
}

#[test]
fn empty_selection_names_the_jobs() {
    let manifest = "version: 1\njobs: [{ id: hero, model: alpha-2, prompt: x, tags: \"launch, summer\" }]\n";
    let here = Workspace::with_manifest(manifest);
    for (option, value, told) in [
        ("--select", "one,two", "`--select one --select two`"),
        ("--select", "Hero", "`hero`"),
        ("--select", "zebra", "`--select zebra`"),
        ("--tag", "nope", "launch, summer"),
    ] {
        let run = here.shotlist(&["run", "m.yaml", "--plan", option, value]);
        let ended = run.fails_with("no-match", 2).lacks(&["MANIFEST"]);
        assert!(ended.stderr.contains(told), "{value}: {}", ended.stderr);
    }
    for tag in ["launch", "summer"] {
        here.shotlist(&["run", "m.yaml", "--plan", "--tag", tag]).ends_with(0);
    }
}

/// Prompt sets and tables as the world ships them.
#[test]
fn rows_come_from_every_usual_file() {
    let here = Workspace::new()
        .file("lines.txt", "First prompt\n\n  Second prompt\n")
        .file(
            "objects.jsonl",
            "{\"prompt\": \"First prompt\", \"n\": 1}\n{\"prompt\": \"Second prompt\", \"n\": null}\n",
        )
        .file("tabs.tsv", "prompt\tn\nFirst prompt\t1\nSecond prompt\t2\n")
        .file("excel.csv", "sep=;\r\nprompt;n\r\nFirst prompt;1\r\nSecond prompt;2\r\n");
    for (file, column) in
        [("lines.txt", "text"), ("objects.jsonl", "prompt"), ("tabs.tsv", "prompt"), ("excel.csv", "prompt")]
    {
        here.write("m.yaml", format!(
            "version: 1\njobs: [{{ id: \"p-{{{{ row_number }}}}\", for_each: {file}, model: alpha-2, prompt: \"{{{{ row.{column} }}}}\" }}]\n"
        ));
        let plan = here.shotlist(&["run", "m.yaml", "--plan", "--format", "json"]).ends_with(0).stdout;
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        let jobs: Vec<(&str, &str)> = plan["jobs"]
            .as_array()
            .expect("jobs")
            .iter()
            .map(|job| (job["id"].as_str().expect("an id"), job["request"]["prompt"].as_str().expect("a prompt")))
            .collect();
        assert_eq!(jobs, [("p-1", "First prompt"), ("p-2", "Second prompt")], "{file}");
    }
    // Names of people and towns become ids.
    here.write("m.yaml", "version: 1\njobs: [{ id: \"{{ row.n | slug }}\", for_each: [{ n: \"Frühling in Łódź!\" }, { n: \"L'été, là\" }], model: alpha-2, prompt: \"{{ row.n }}\" }]\n");
    let plan = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0).stdout;
    insta::assert_snapshot!(plan, @"
    m: 2 jobs

       ACTION  JOB                MODEL    SHAPE  LENGTH   COST  WHY
       submit  fruehling-in-lodz  alpha-2  16:9     12 s  $0.90  is new
       submit  lete-la            alpha-2  16:9     12 s  $0.90  is new

       MODEL    JOBS  SECONDS   COST
       alpha-2     2       24  $1.80

    2 jobs to submit for $1.80: about 2 min, about 10 requests
    digest: 9a031cab37a943e11426544075e6fdbbfd2b556880c62c207200bf2e43e54ca0
    to buy exactly this: shotlist run m.yaml --approved 9a031cab37a943e11426544075e6fdbbfd2b556880c62c207200bf2e43e54ca0
    ");
}

/// JSON as Python writes it: letters beyond the first 65,536 in two halves.
#[test]
fn json_manifest_may_have_surrogate_pairs() {
    let here = Workspace::with_manifest(
        r#"{"version": 1, "name": "n", "jobs": [{"id": "a", "model": "alpha-2", "prompt": "\ud83d\ude00 \u00e9"}]}"#,
    );
    assert_eq!(here.plan(&[])["jobs"][0]["request"]["prompt"], "😀 é");
}

#[test]
fn suggested_id_of_a_matrix_makes_a_plan() {
    for matrix in ["shape: ['16:9', '9:16']", "model: [alpha-2, beta-2.0-lite]", "look: [Blue Hour, dusk], nr: [1, 2]"]
    {
        let manifest = format!(
            "version: 1\ndefaults: {{ model: alpha-2 }}\njobs: [{{ id: a, prompt: A crane unfolds, matrix: {{ {matrix} }} }}]\n"
        );
        let here = Workspace::with_manifest(&manifest);
        let help = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).line("the values of the matrix");
        let id = help.split('`').nth(1).expect("the ID to write");
        here.write("m.yaml", manifest.replace("id: a", id));
        here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(0);
    }
}
