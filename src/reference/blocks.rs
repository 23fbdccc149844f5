//! Markdown as the topics use it: headings, paragraphs, lists of one level, tables and code.

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A piece of a line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Span {
    /// Words.
    Text(String),
    /// Words that matter.
    Strong(String),
    /// Code: a command, or the text of a file.
    Code(String),
}

impl Span {
    /// The text.
    pub(super) fn words(&self) -> &str {
        match self {
            Self::Text(words) | Self::Strong(words) | Self::Code(words) => words,
        }
    }
}

/// A line that can be broken.
pub(super) type Spans = Vec<Span>;

/// A block of a page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Block {
    /// The title of the page.
    Title(Spans),
    /// A heading.
    Heading(Spans),
    /// A paragraph.
    Paragraph(Spans),
    /// A point of a list.
    Item(Spans),
    /// Lines as they are.
    Code(String),
    /// A row of a table: its first cell, and the others, each with the head of its column.
    Row(Spans, Vec<(Spans, Spans)>),
}

/// The blocks of a text.
///
/// # Panics
///
/// If the text has something that the topics have no use for. The topics are a part of the program, and a test reads all of them.
pub(super) fn of(markdown: &str) -> Vec<Block> {
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        reader.take(event);
    }
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    spans: Spans,
    is_strong: bool,
    is_in_item: bool,
    /// The heads of the table's columns.
    heads: Vec<Spans>,
    cells: Vec<Spans>,
    code: Option<String>,
}

impl Reader {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => self.code = Some(String::new()),
            Event::Start(Tag::Strong) => self.is_strong = true,
            Event::Start(Tag::Item) => self.is_in_item = true,
            Event::Start(
                Tag::Heading { level: HeadingLevel::H1 | HeadingLevel::H2, .. }
                | Tag::Paragraph
                | Tag::List(None)
                | Tag::Emphasis
                | Tag::Table(_)
                | Tag::TableHead
                | Tag::TableRow
                | Tag::TableCell,
            )
            | Event::End(TagEnd::Emphasis | TagEnd::List(_) | TagEnd::Table) => {}
            Event::End(end) => self.end(end),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None if self.is_strong => self.spans.push(Span::Strong(text.into_string())),
                None => self.spans.push(Span::Text(text.into_string())),
            },
            Event::Code(text) => self.spans.push(Span::Code(text.into_string())),
            Event::SoftBreak => self.spans.push(Span::Text(" ".to_owned())),
            unknown => unreachable!("the topics have no {unknown:?}"),
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Strong => self.is_strong = false,
            TagEnd::TableCell => {
                let cell = self.line();
                self.cells.push(cell);
            }
            TagEnd::TableHead => self.heads = std::mem::take(&mut self.cells),
            TagEnd::TableRow => {
                let mut cells = std::mem::take(&mut self.cells).into_iter().zip(self.heads.iter().cloned());
                if let Some((first, _)) = cells.next() {
                    self.blocks.push(Block::Row(first, cells.map(|(cell, head)| (head, cell)).collect()));
                }
            }
            TagEnd::Heading(HeadingLevel::H1) => self.block(Block::Title),
            TagEnd::Heading(_) => self.block(Block::Heading),
            // A point whose paragraph has ended already has no more to say.
            TagEnd::Item if self.spans.is_empty() => self.is_in_item = false,
            TagEnd::Item => {
                self.block(Block::Item);
                self.is_in_item = false;
            }
            TagEnd::Paragraph if self.is_in_item => self.block(Block::Item),
            TagEnd::Paragraph => self.block(Block::Paragraph),
            TagEnd::CodeBlock => self.blocks.extend(self.code.take().map(Block::Code)),
            unknown => unreachable!("the topics have no {unknown:?}"),
        }
    }

    fn block(&mut self, kind: fn(Spans) -> Block) {
        let line = self.line();
        self.blocks.push(kind(line));
    }

    fn line(&mut self) -> Spans {
        std::mem::take(&mut self.spans)
    }
}
