//! The byte range of each value in the file. It is made when the first diagnostic has to be shown, and only then: an event parser goes over
//! the text and keeps only ranges, never values.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use granit_parser::{Event, Parser};

use super::location::{Part, Pointer, Step};

#[derive(Debug)]
struct Node {
    range: Range<usize>,
    /// Shared by aliases, never copied: an alias bomb stays as small as it was written.
    kind: Rc<Kind>,
    /// True if it only repeats another, which is checked at its own location.
    is_alias: bool,
}

#[derive(Debug)]
enum Kind {
    Scalar,
    List(Vec<Rc<Node>>),
    Map(Entries),
}

/// The entries of a mapping, and where each key stands among them. A manifest may have a hundred thousand wrong keys in one.
#[derive(Debug, Default)]
struct Entries {
    list: Vec<Entry>,
    index: OnceCell<HashMap<String, Vec<usize>>>,
}

impl Entries {
    /// The entry of a key, or that of the key's second occurrence.
    fn of_key(&self, key: &str, again: bool) -> Option<&Entry> {
        let index = self.index.get_or_init(|| {
            let mut index: HashMap<String, Vec<usize>> = HashMap::with_capacity(self.list.len());
            for (at, entry) in self.list.iter().enumerate() {
                index.entry(entry.key.clone()).or_default().push(at);
            }
            index
        });
        self.list.get(*index.get(key)?.get(usize::from(again))?)
    }
}

#[derive(Debug)]
struct Entry {
    key: String,
    key_range: Range<usize>,
    value: Rc<Node>,
}

/// The byte range of every value and key of a YAML text, as far as it could be parsed.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    top: Option<Rc<Node>>,
}

impl Marks {
    /// Marks of a text. One that is no YAML has none: its fault was reported with a place by the parser that found it.
    pub(crate) fn of(text: &str) -> Self {
        let mut builder = Builder::default();
        for event in Parser::new_from_str(text) {
            let Ok((event, span)) = event else { break };
            let Some(range) = span.byte_range() else { break };
            builder.take(event, range);
        }
        Self { top: builder.done }
    }

    /// The byte range of every text and key.
    pub(crate) fn of_texts(text: &str) -> Vec<Range<usize>> {
        let events = Parser::new_from_str(text).map_while(Result::ok);
        events
            .filter(|(event, _)| matches!(event, Event::Scalar(..)))
            .filter_map(|(_, span)| span.byte_range())
            .collect()
    }

    /// The byte range of a place, or of the nearest thing around it that has one.
    pub(crate) fn find(&self, pointer: &Pointer, part: &Part, text: &str) -> Option<Range<usize>> {
        let mut node = self.top.as_ref()?;
        let mut range = first_line(&node.range, text);
        for (nth, step) in pointer.0.iter().enumerate() {
            let last = nth + 1 == pointer.0.len();
            match (step, &*node.kind) {
                (Step::Index(index), Kind::List(items)) => {
                    let Some(item) = items.get(*index) else { break };
                    node = item;
                    range = node.range.clone();
                }
                (Step::Key(key), Kind::Map(_)) => {
                    let Some(entry) = lookup(node, key, last && *part == Part::Again) else { break };
                    node = &entry.value;
                    let keyed = last && matches!(part, Part::Key | Part::Again);
                    let unseen = text[node.range.clone()].trim().is_empty();
                    range = if keyed || unseen { entry.key_range.clone() } else { node.range.clone() };
                }
                _ => break,
            }
        }
        if let Part::Fragment(fragment, earlier) = part {
            let mut found = text.get(range.clone()).into_iter().flat_map(|written| written.match_indices(fragment));
            if let Some((at, _)) = found.nth(*earlier) {
                return Some(range.start + at..range.start + at + fragment.len());
            }
        }
        Some(range)
    }

    /// Every key that is twice in one mapping, with the pointer to it.
    pub(crate) fn duplicates(&self) -> Vec<Pointer> {
        let mut found = Vec::new();
        if let Some(top) = &self.top {
            collect_duplicates(top, &Pointer::top(), &mut found);
        }
        found
    }
}

/// The entry of a key: the mapping's own, or one that a merge key (`<<`) brings in.
fn lookup<'n>(node: &'n Node, key: &str, again: bool) -> Option<&'n Entry> {
    let Kind::Map(entries) = &*node.kind else { return None };
    if let Some(entry) = entries.of_key(key, again) {
        return Some(entry);
    }
    let merged = entries.list.iter().filter(|entry| entry.key == "<<").flat_map(|entry| match &*entry.value.kind {
        Kind::List(items) => items.iter().map(Rc::as_ref).collect(),
        _ => vec![entry.value.as_ref()],
    });
    merged.into_iter().find_map(|base| match &*base.kind {
        Kind::Map(entries) => entries.of_key(key, false),
        _ => None,
    })
}

fn collect_duplicates(node: &Node, at: &Pointer, found: &mut Vec<Pointer>) {
    // Followed, the references of an alias bomb would multiply here as anywhere.
    if node.is_alias {
        return;
    }
    match &*node.kind {
        Kind::Scalar => {}
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_duplicates(item, &at.index(index), found);
            }
        }
        Kind::Map(entries) => {
            let mut seen: HashMap<&str, usize> = HashMap::new();
            for entry in &entries.list {
                let times = seen.entry(&entry.key).or_default();
                *times += 1;
                if *times == 2 && entry.key != "<<" {
                    found.push(at.key(&entry.key));
                }
                collect_duplicates(&entry.value, &at.key(&entry.key), found);
            }
        }
    }
}

/// The first line of a range: underlining a whole file helps no one.
fn first_line(range: &Range<usize>, text: &str) -> Range<usize> {
    let written = text.get(range.clone()).unwrap_or_default();
    let length = written.find('\n').unwrap_or(written.len());
    range.start..range.start + length
}

/// An open collection while events arrive.
#[derive(Debug)]
enum Open {
    List(usize, usize, Vec<Rc<Node>>),
    Map(usize, usize, Vec<Entry>, Option<(String, Range<usize>)>),
}

/// Events to nodes, with a stack of its own so that depth costs no call stack.
#[derive(Debug, Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Rc<Kind>>,
    done: Option<Rc<Node>>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Scalar(text, _, anchor, _) => {
                self.close(Kind::Scalar, range, anchor, Some(text.into_owned()));
            }
            Event::Alias(anchor) => {
                let kind = self.anchors.get(&anchor).map_or_else(|| Rc::new(Kind::Scalar), Rc::clone);
                self.add(Node { range, kind, is_alias: true }, None);
            }
            Event::SequenceStart(_, anchor, _) => self.open.push(Open::List(range.start, anchor, Vec::new())),
            Event::MappingStart(_, anchor, _) => self.open.push(Open::Map(range.start, anchor, Vec::new(), None)),
            Event::SequenceEnd => {
                if let Some(Open::List(start, anchor, items)) = self.open.pop() {
                    self.close(Kind::List(items), start..range.end, anchor, None);
                }
            }
            Event::MappingEnd => {
                if let Some(Open::Map(start, anchor, list, _)) = self.open.pop() {
                    let kind = Kind::Map(Entries { list, index: OnceCell::new() });
                    self.close(kind, start..range.end, anchor, None);
                }
            }
            _ => {}
        }
    }

    /// Adds a complete node, and remembers it for aliases if it has an anchor.
    fn close(&mut self, kind: Kind, range: Range<usize>, anchor: usize, text: Option<String>) {
        let kind = Rc::new(kind);
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&kind));
        }
        self.add(Node { range, kind, is_alias: false }, text);
    }

    /// Adds a node as an entry, a key, a value, or the top.
    fn add(&mut self, node: Node, text: Option<String>) {
        let (range, node) = (node.range.clone(), Rc::new(node));
        match self.open.last_mut() {
            None => self.done = Some(node),
            Some(Open::List(_, _, items)) => items.push(node),
            Some(Open::Map(_, _, entries, key)) => match key.take() {
                Some((key, key_range)) => entries.push(Entry { key, key_range, value: node }),
                None => *key = Some((text.unwrap_or_default(), range)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice<'t>(text: &'t str, pointer: &Pointer, part: &Part) -> &'t str {
        Marks::of(text).find(pointer, part, text).map_or("nowhere", |range| &text[range])
    }

    #[test]
    fn finds_values_keys_and_fragments() {
        let text = "jobs:\n  - id: \"é-{{ x }}\"\n    duration: 12\n    image: [a, b]\n    prompt:\n";
        let job = Pointer::top().key("jobs").index(0);
        assert_eq!(slice(text, &job.key("duration"), &Part::Value), "12");
        assert_eq!(slice(text, &job.key("duration"), &Part::Key), "duration");
        assert_eq!(slice(text, &job.key("image").index(1), &Part::Value), "b");
        assert_eq!(slice(text, &job.key("id"), &Part::Fragment("x".into(), 0)), "x");
        assert_eq!(slice(text, &job.key("prompt"), &Part::Value), "prompt");
    }

    #[test]
    fn finds_what_a_merge_key_brings_in_where_it_was_written() {
        let text = "base: &b { duration: 99 }\njobs:\n  - { <<: *b, id: x }\n";
        assert_eq!(slice(text, &Pointer::top().key("jobs").index(0).key("duration"), &Part::Value), "99");
    }

    #[test]
    fn finds_the_second_of_a_key_that_stands_twice() {
        let text = "a: 1\njobs:\n  - id: x\n    id: y\n";
        let marks = Marks::of(text);
        let found = marks.duplicates();
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), ["jobs[0].id"]);
        let again = marks.find(&found[0], &Part::Again, text).expect("a range");
        assert_eq!(text[..again.start].lines().count(), 4);
    }

    #[test]
    fn an_alias_bomb_stays_small() {
        use std::fmt::Write as _;
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..40 {
            let inner = vec![format!("*a{}", level - 1); 10].join(", ");
            writeln!(text, "a{level}: &a{level} [{inner}]").expect("a string");
        }
        assert_eq!(slice(&text, &Pointer::top().key("a3"), &Part::Key), "a3");
    }
}
