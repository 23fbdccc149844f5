//! Blocks as plain text: nothing but words, so that it reads the same in a terminal, a pipe and a mail.

use unicode_width::UnicodeWidthStr as _;

use super::blocks::{Block, Span};

/// The text in at most so many columns; a word that is longer stays whole.
pub(super) fn text(blocks: &[Block], columns: usize) -> String {
    let mut text = String::new();
    let mut before: Option<&Block> = None;
    for block in blocks {
        // Points and rows stand close together if each is one short line, which no one can know beforehand: so they never do.
        if before.is_some() {
            text.push('\n');
        }
        match block {
            Block::Title(spans) => text += &(plain(spans).to_uppercase() + "\n"),
            Block::Heading(spans) => text += &(plain(spans) + "\n"),
            Block::Paragraph(spans) => text += &filled(&plain(spans), columns, "  ", "  "),
            Block::Item(spans) => text += &filled(&plain(spans), columns, "  - ", "    "),
            Block::Code(lines) => lines.lines().for_each(|line| text += &format!("    {line}\n")),
            Block::Row(first, others) => {
                text += &filled(&plain(first), columns, "  ", "  ");
                for (head, cell) in others.iter().filter(|(_, cell)| !cell.is_empty()) {
                    // A single column is the subject of its row.
                    let line =
                        if others.len() == 1 { plain(cell) } else { format!("{}: {}", plain(head), plain(cell)) };
                    text += &filled(&line, columns, "      ", "        ");
                }
            }
        }
        before = Some(block);
    }
    text
}

fn plain(spans: &[Span]) -> String {
    let one = |span: &Span| match span {
        Span::Text(words) | Span::Strong(words) => words.clone(),
        Span::Code(words) => format!("`{words}`"),
    };
    spans.iter().map(one).collect()
}

/// Words in lines, the first of which begins so, and the others so.
fn filled(words: &str, columns: usize, first: &str, others: &str) -> String {
    let (mut text, mut line, mut has_word) = (String::new(), first.to_owned(), false);
    for word in words.split_whitespace() {
        if has_word && line.width() + 1 + word.width() > columns {
            text += &(line + "\n");
            (line, has_word) = (others.to_owned(), false);
        }
        if has_word {
            line.push(' ');
        }
        line.push_str(word);
        has_word = true;
    }
    text + &line + "\n"
}
