//! Workbooks that are broken, or made to do harm: each is refused with a message, in a moment and with little memory.
#![cfg(unix)]

use std::io::Write as _;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::support::{Ended, Program, Workspace};

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";

/// A workbook with this sheet data and these shared texts.
fn xlsx(rows: &str, texts: &str) -> Vec<u8> {
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let parts = [
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns=\"{package}\"><Relationship Id=\"rId1\" Type=\"{office}/officeDocument\" Target=\"xl/workbook.xml\"/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns=\"{MAIN}\" xmlns:r=\"{office}\"><sheets><sheet name=\"S\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns=\"{package}\"><Relationship Id=\"rId1\" Type=\"{office}/worksheet\" Target=\"worksheets/sheet1.xml\"/><Relationship Id=\"rId2\" Type=\"{office}/sharedStrings\" Target=\"sharedStrings.xml\"/></Relationships>"
            ),
        ),
        ("xl/sharedStrings.xml", texts.to_owned()),
        ("xl/worksheets/sheet1.xml", format!("<worksheet xmlns=\"{MAIN}\"><sheetData>{rows}</sheetData></worksheet>")),
    ];
    packed(parts.iter().map(|(name, text)| (*name, text.as_str())))
}

fn packed<'p>(parts: impl IntoIterator<Item = (&'p str, &'p str)>) -> Vec<u8> {
    let mut archive = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, text) in parts {
        archive.start_file(name, SimpleFileOptions::default()).expect("a part");
        archive.write_all(text.as_bytes()).expect("written");
    }
    archive.finish().expect("an archive").into_inner()
}

/// Shared texts: `id`, `prompt`, `a`, and another.
fn texts(another: &str) -> String {
    format!(
        "<sst xmlns=\"{MAIN}\"><si><t>id</t></si><si><t>prompt</t></si><si><t>a</t></si><si><t>{another}</t></si></sst>"
    )
}

fn cell(address: &str, text: usize) -> String {
    format!("<c r=\"{address}\" t=\"s\"><v>{text}</v></c>")
}

fn row(number: usize, cells: &str) -> String {
    format!("<row r=\"{number}\">{cells}</row>")
}

fn head() -> String {
    row(1, &(cell("A1", 0) + &cell("B1", 1)))
}

/// A sheet of LibreOffice with these rows.
fn ods(rows: &str) -> Vec<u8> {
    let content = format!(
        "<office:document-content><office:body><office:spreadsheet><table:table table:name=\"S\">{rows}</table:table></office:spreadsheet></office:body></office:document-content>"
    );
    let manifest = "<manifest:manifest/>";
    packed([
        ("mimetype", "application/vnd.oasis.opendocument.spreadsheet"),
        ("META-INF/manifest.xml", manifest),
        ("content.xml", content.as_str()),
    ])
}

/// Plans the rows of a workbook within 1 GiB of address space and 20 s of processor time.
fn planned(name: &str, bytes: &[u8]) -> Ended {
    let manifest = format!(
        "version: 1\njobs: [{{ id: \"{{{{ row.id }}}}\", for_each: {name}, model: alpha-2, prompt: \"{{{{ row.prompt }}}}\" }}]\n"
    );
    let here = Workspace::with_manifest(&manifest).file(name, bytes);
    Program::script(here.root(), "ulimit -v 1048576; ulimit -t 20; exec \"$0\" run m.yaml --plan -v").ends()
}

/// Plans each of these workbooks, which must be refused with a message.
fn refused(cases: &[(&str, &str, Vec<u8>, &str)]) {
    for (what, name, bytes, told) in cases {
        let ended = planned(name, bytes);
        assert_eq!(ended.code, Some(2), "{what}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{what}: {}", ended.stderr);
    }
}

#[test]
fn workbook_with_a_false_size_is_refused_quickly() {
    let far = row(1, &(cell("A1", 0) + &cell("B1", 1) + &cell("XFD1", 2)));
    let thin: String = (2..=100_000).map(|number| row(number, &cell(&format!("A{number}"), 2))).collect();
    let shared = |cells: &str| head() + &row(2, cells);
    let many: String = (2..=2_001)
        .map(|number| row(number, &(cell(&format!("A{number}"), 2) + &cell(&format!("B{number}"), 3))))
        .collect();
    let formula = format!(
        "<c r=\"C2\"><f t=\"shared\" ref=\"C2:C2001\" si=\"0\">{}</f><v>1</v></c>",
        "A1+".repeat(350_000) + "1"
    );
    let derived: String = (3..=2_001)
        .map(|number| {
            row(
                number,
                &format!("{}<c r=\"C{number}\"><f t=\"shared\" si=\"0\"/><v>1</v></c>", cell(&format!("A{number}"), 2)),
            )
        })
        .collect();
    refused(&[
        (
            "a header cell far outside",
            "w.xlsx",
            xlsx(&row(1, &cell("ZZZZZZ1", 0)), &texts("x")),
            "a sheet has no cell ZZZZZZ1",
        ),
        (
            "a header cell outside",
            "w.xlsx",
            xlsx(&row(1, &cell("ZZZZZ1", 0)), &texts("x")),
            "a sheet has no cell ZZZZZ1",
        ),
        (
            "a row outside",
            "w.xlsx",
            xlsx(&(head() + &row(2, &cell("A4294967298", 2))), &texts("x")),
            "a sheet has no cell A4294967298",
        ),
        (
            "a number of texts",
            "w.xlsx",
            xlsx(&head(), &texts("x").replace("<sst", "<sst uniqueCount=\"18446744073709551615\"")),
            "it claims to have 18446744073709551615 texts",
        ),
        (
            "a long text in many cells",
            "w.xlsx",
            xlsx(&(head() + &many), &texts(&"x".repeat(40 << 20))),
            "more than 64 MiB of text",
        ),
        (
            "a header that reaches far",
            "w.xlsx",
            xlsx(&(far + &thin), &texts("x")),
            "more than 20000000 cells below its header",
        ),
        (
            "a text before the first",
            "w.xlsx",
            xlsx(&shared("<c r=\"A2\" t=\"s\"><v>-1</v></c>"), &texts("x")),
            "can't read workbook",
        ),
        ("no number", "w.xlsx", xlsx(&shared("<c r=\"A2\"><v>NaN</v></c>"), &texts("x")), "contains #NUM!"),
        (
            "a number without an end",
            "w.xlsx",
            xlsx(&shared("<c r=\"A2\"><v>1e400</v></c>"), &texts("x")),
            "contains #NUM!",
        ),
        (
            "a shared formula",
            "w.xlsx",
            xlsx(&(head() + &row(2, &(cell("A2", 2) + &formula)) + &derived), &texts("x")),
            "the prompt is blank",
        ),
    ]);
}

#[test]
fn sheet_of_repeated_rows_is_refused_quickly() {
    let repeated =
        |cell: &str| format!("<table:table-row table:number-rows-repeated=\"1048576\">{cell}</table:table-row>");
    let text = |columns: u64, text: &str| {
        format!(
            "<table:table-cell office:value-type=\"string\" table:number-columns-repeated=\"{columns}\"><text:p>{text}</text:p></table:table-cell>"
        )
    };
    let formula = |text: &str| {
        ods(&format!(
            "<table:table-row table:number-rows-repeated=\"100\"><table:table-cell office:value-type=\"string\" table:formula=\"of:={}\" table:number-columns-repeated=\"160\">{text}</table:table-cell></table:table-row>",
            "1+".repeat(1 << 16)
        ))
    };
    refused(&[
        ("repeated cells", "w.ods", ods(&repeated(&text(16_384, "x"))), "more than 64 MiB of text"),
        ("cells outside", "w.ods", ods(&repeated(&text(u64::MAX, "x"))), "more than 64 MiB of text"),
        ("a long formula in repeated cells", "w.ods", formula(""), "more than 64 MiB of text"),
        ("the same with a text", "w.ods", formula("<text:p>x</text:p>"), "more than 64 MiB of text"),
        ("the same with a blank", "w.ods", formula("<text:p> </text:p>"), "more than 64 MiB of text"),
        (
            "rows outside",
            "w.ods",
            ods(&format!(
                "<table:table-row table:number-rows-repeated=\"18446744073709551615\">{}</table:table-row>",
                text(1, "")
            )),
            "w.ods has no header row",
        ),
        (
            "a long text in repeated cells",
            "w.ods",
            ods(&repeated(&text(16_384, &"x".repeat(1 << 20)))),
            "more than 64 MiB of text",
        ),
    ]);
}

/// An empty value has no end tag: the text of the next formula is not its value.
#[test]
fn formula_without_a_result_is_an_error_in_any_form() {
    let id = |number: usize| format!("<c r=\"A{number}\" t=\"inlineStr\"><is><t>a{number}</t></is></c>");
    for value in ["", "<v/>", "<v></v>", "<v> </v>"] {
        let rows: String = (2..4)
            .map(|number| row(number, &(id(number) + &format!("<c r=\"B{number}\"><f>A{number}</f>{value}</c>"))))
            .collect();
        let ended = planned("w.xlsx", &xlsx(&(head() + &rows), &texts("x")));
        assert_eq!(ended.code, Some(2), "{value}: {}", ended.stdout);
        assert_eq!(ended.stderr.matches("w.xlsx line").count(), 2, "{value}: {}", ended.stderr);
        assert!(ended.stderr.contains("contains a formula without a result"), "{value}: {}", ended.stderr);
    }
}
