//! Blocks as a page of the manual.

use roff::{Inline, Roff, bold, roman};

use super::blocks::{Block, Span};

/// The page of a topic: its name and section, its title, its text, and the pages to see also.
pub(super) fn page((name, section): (&str, char), title: &str, blocks: &[Block], see_also: &str) -> String {
    let (name, section) = (format!("shotlist-{name}"), section.to_string());
    let mut page = Roff::new();
    let version = concat!("shotlist ", env!("CARGO_PKG_VERSION"));
    page.control("TH", [name.to_uppercase().as_str(), &section, "", version, "shotlist"]);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{name} - {title}"))]);
    page.control("SH", ["DESCRIPTION"]);
    for block in blocks {
        match block {
            // It is the name.
            Block::Title(_) => {}
            Block::Heading(spans) => {
                let words: String = spans.iter().map(Span::words).collect();
                page.control("SH", [words.to_uppercase().as_str()]);
            }
            Block::Paragraph(spans) => {
                page.control("PP", []);
                page.text(inlines(spans));
            }
            Block::Item(spans) => {
                page.control("IP", ["\\(bu", "2"]);
                page.text(inlines(spans));
            }
            Block::Code(lines) => {
                page.control("PP", []);
                page.control("RS", ["4"]);
                page.control("nf", []);
                for line in lines.lines() {
                    page.text([roman(line)]);
                }
                page.control("fi", []);
                page.control("RE", []);
            }
            Block::Row(first, others) => {
                page.control("TP", ["4"]);
                page.text(inlines(first));
                for (at, (head, cell)) in others.iter().filter(|(_, cell)| !cell.is_empty()).enumerate() {
                    if at > 0 {
                        page.control("br", []);
                    }
                    let head = if others.len() == 1 { Vec::new() } else { [inlines(head), vec![roman(": ")]].concat() };
                    page.text([head, inlines(cell)].concat());
                }
            }
        }
    }
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(see_also)]);
    page.render()
}

fn inlines(spans: &[Span]) -> Vec<Inline> {
    spans
        .iter()
        .map(|span| match span {
            Span::Text(words) => roman(words.as_str()),
            Span::Strong(words) | Span::Code(words) => bold(words.as_str()),
        })
        .collect()
}
