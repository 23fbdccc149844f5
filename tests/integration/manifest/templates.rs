//! Templates: their values, and the help for those that are wrong.

use crate::support::Workspace;

/// Whether or not a template names the file.
#[test]
fn faults_of_a_prompt_file_name_it() {
    for file in ["p.txt", "{{ row.kind }}.txt"] {
        let manifest = format!(
            "version: 1\ndefaults: {{ model: alpha-2 }}\njobs: [{{ id: \"{{{{ row.id }}}}\", for_each: rows.csv, prompt_file: \"{file}\" }}]\n"
        );
        let here = Workspace::with_manifest(&manifest)
            .file("rows.csv", "id,kind,color\na,p,red\nb,p,\n")
            .file("p.txt", "A {{ row.color }} car\n");
        let first =
            |exit| here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(exit).stderr.lines().next().map(str::to_owned);
        let empty = "warning[prompt-empty-cell]: in p.txt: `row.color` is empty in the middle of the prompt";
        assert_eq!(first(0).as_deref(), Some(empty), "{file}");
        here.write("p.txt", "A {{ row.colour }} car\n");
        assert_eq!(first(2).as_deref(), Some("error[template]: in p.txt: `row.colour` is not defined"), "{file}");
    }
}

/// Names in groups and operators of other tools.
#[test]
fn template_of_another_tool_gets_its_own_words() {
    let filters = "filters, as in `{{ name | upper }}`: lower, upper, title, capitalize, trim, slug, replace, default, join, split, first, last, length, int, round, format";
    for (template, help) in [
        ("{{ matrix.lang }}", "write `{{ lang }}`"),
        ("{{ secrets.brand }}", "write `{{ brand }}`"),
        ("{{ item.tags }}", "write `{{ row.tags }}`"),
        ("{{ Row.tags }}", "write `{{ row.tags }}`"),
        ("{{ row['tgas'] }}", "a similar one exists: `tags`"),
        ("{{ row.tags || 'x' }}", "in place of `||`, write `or`"),
        ("{% if lang %}a{% else if brand %}b{% endif %}", "in place of `else if`, write `elif`"),
        ("{{ lang != null }}", "in place of `null`, write `none`"),
        ("{% if braand == lang %}a{% endif %}", "a similar one exists: `brand`"),
        ("{{ lang ? 'a' : 'b' }}", "in place of `?`, write `{{ one if … else another }}`"),
        ("who is null ? {{ lang | }}", "a template is `{{ name }}`; to write two braces as they are, use {{ \"{{\" }}"),
        ("{{ row.n + 1 }}", "write `row.n | int`, or put quotes around the value that it is compared with"),
        ("{{ row.tagz.upper() }}", "a similar one exists: `tags`"),
        ("{{ now() }}", &format!("the date is `{{{{ today }}}}`; {filters}")),
        ("{% if row.sale %}reduced{% endif %}", "compare it: `row.sale == \"yes\"`"),
        ("{{ 'reduced' if row.sale else 'new' }}", "compare it: `row.sale == \"yes\"`"),
    ] {
        let here = Workspace::with_manifest(&of_row(template));
        let told = here.shotlist(&["run", "m.yaml", "--plan"]).ends_with(2).stderr;
        assert_eq!(told.lines().find_map(|line| line.split_once("help: ")), Some(("  = ", help)), "{template}");
    }
}

fn of_row(template: &str) -> String {
    format!(
        "version: 1\nvars: {{ brand: A }}\ndefaults: {{ model: alpha-2 }}\njobs:\n  - id: a\n    for_each: [{{ n: '1', tags: x, sale: 'No', new: 'Yes' }}]\n    matrix: {{ lang: [de] }}\n    prompt: |\n      A dog {template}\n"
    )
}

#[test]
fn text_is_joined_and_counted_as_it_is_written() {
    for (template, expected) in [
        ("{{ 2025 - row.n|int }}", "2024"),
        ("{{ row.tags + row.n }}", "x1"),
        ("{{ row.n|int * 2 + row.n|int }}", "3"),
        ("{{ 100-row.n|int }}", "99"),
        ("{{ row.n }}-1", "1-1"),
        ("{% if row.new %}new{% endif %}", "new"),
        ("{% if row.sale %}that says {{ row.sale }}{% endif %}", "that says No"),
        ("{% if row.sale == 'Yes' %}reduced{% else %}dear{% endif %}", "dear"),
    ] {
        let plan = Workspace::with_manifest(&of_row(template)).plan(&[]);
        assert_eq!(plan["jobs"][0]["request"]["prompt"], format!("A dog {expected}\n").trim_end(), "{template}");
    }
}
