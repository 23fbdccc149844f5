//! Lints: valid input that is probably wrong. They are warnings, because the input would be paid for.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use granit_parser::{Event, Parser, ScalarStyle};
use memchr::memchr3;

use super::diagnostic::{Diagnostic, Location, Marks, Part, Pointer, error, nearest, warning};
use crate::domain::{Cells, Job, Label, OutputPath, Spec};

/// Errors that spreadsheets write into a cell, in several languages.
pub(in crate::manifest) const OF_SPREADSHEETS: &str = "#REF! #N/A #VALUE! #NAME? #DIV/0! #NULL! #NUM! #SPILL! #ERROR! #CALC! #FIELD! #BLOCKED! \
     #BUSY! #GETTING_DATA #WERT! #BEZUG! #NV #ZAHL! #ÜBERLAUF! #VALEUR! #NOM? #NOMBRE! #¡VALOR! #¡REF! #¿NOMBRE? #¡NUM! #¡DIV/0! \
     #VALORE! #RIF! #NOME? #N/D #VALOR! #ARG! #ADR! #LICZBA! #NAZWA? #WAARDE! #VERW! #NAAM? #GETAL!";
/// Each placeholder has one of these bytes. One search finds three of them.
const MARKS: [&[u8; 3]; 2] = [b"{[#", b"<%$"];
/// The namespace of the tags that YAML has itself, and those of plain scalars.
const CORE: &str = "tag:yaml.org,2002:";
const PLAIN_TAGS: [&str; 5] = ["str", "int", "float", "bool", "null"];
/// Words for an empty cell, and of the last row of a sheet.
static NOTHING: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let words =
        "n/a,na,nan,none,null,undefined,tbd,todo,ditto,same as above,total,totals,sum,subtotal,summe,gesamt,prompt";
    words.split(',').collect()
});
/// Fields that a wrong indentation makes a part of the prompt.
const FIELDS: [&str; 10] =
    ["id", "prompt", "model", "duration", "shape", "size", "aspect_ratio", "takes", "image", "tags"];
/// Characters that another program left: UTF-8 read as another encoding, the sign of a lost letter, and the code of web pages, strings, and URLs.
const LEFT_OVER: &str = "Ã¤ Ã© Ã¶ Ã¼ â€ \u{fffd} &amp; &quot; &nbsp; &lt; &gt; &# <!-- /* <br> <br/ <p> </p> </div> </span> \\n \\u %20 %0A [object";
/// Beginnings of list items, headings, texts of chat programs, and missing values.
const BEGINNINGS: &str = "# |- |* |• |1. |1) |**|Sure! |Sure, |Here is a prompt|prompt: |Prompt: |undefined ";
/// The start of placeholder text.
const LOREM: &str = "lorem ipsum";
/// URLs that lead to a page about a file, and not to the file.
const PAGES: [&str; 4] = ["drive.google.com/file/", "docs.google.com/", "www.dropbox.com/s", "photos.app.goo.gl/"];

/// An unfilled placeholder in a finished prompt. `names` are the possible meanings.
pub(crate) fn unfilled_placeholder(
    prompt: &str,
    names: impl Fn() -> Vec<String>,
    place: impl FnOnce() -> Location,
) -> Option<Diagnostic> {
    let trimmed = prompt.trim();
    let is_nothing = |word: &&str| trimmed.eq_ignore_ascii_case(word);
    // Such a cell has a formula, or the path of a text.
    let path = trimmed.trim_start_matches("!include ").trim_start_matches('@');
    let is_file = [".txt", ".md"].iter().any(|ending| path.ends_with(ending));
    // This ends early: almost every prompt has a blank among its first characters.
    let is_reference =
        !path.contains(char::is_whitespace) && (trimmed.starts_with('=') || trimmed.contains("://") || is_file);
    let has_no_word = !trimmed.is_empty() && !trimmed.contains(char::is_alphabetic);
    let left = if NOTHING.iter().any(is_nothing) || has_no_word || is_reference {
        Some(trimmed.to_owned())
    } else if let Some(left) = spelled_out(trimmed, &names).or_else(|| slipped_in(trimmed)) {
        Some(left)
    } else if MARKS.iter().any(|[a, b, c]| memchr3(*a, *b, *c, prompt.as_bytes()).is_some()) {
        let is_error = |error: &&str| error.ends_with(['!', '?', 'A']) && prompt.contains(error);
        let of_spreadsheets = OF_SPREADSHEETS.split(' ').find(is_error).map(str::to_owned);
        let braces =
            || ["{{", "{%", "<%"].iter().find(|braces| prompt.contains(**braces)).map(|&braces| braces.to_owned());
        of_spreadsheets.or_else(braces).or_else(|| unfilled(prompt, &names()))
    } else {
        None
    };
    left.map(|left| {
        let of_a_cell = format!("write `{{{{ {left} }}}}`");
        let of_a_file = format!("write `prompt_file: {path}`");
        let help = if BEGINNINGS.split('|').any(|beginning| beginning.trim_end() == left) {
            "remove it: the model reads all of the prompt"
        } else if is_file && left == trimmed {
            of_a_file.as_str()
        } else if left.starts_with(['#', '=']) {
            "fix the formula in the spreadsheet"
        } else if left.starts_with("row.") {
            of_a_cell.as_str()
        } else if left.starts_with("--") {
            "remove it: `shape` and `duration` are fields of the job, and the model reads all of the prompt"
        } else if left.ends_with(':') {
            "indent the line as the other fields, so that it is not a part of the prompt"
        } else if LEFT_OVER.split(' ').any(|code| code == left) {
            "write what people read: this is code, or a letter that was damaged because the file is not \"CSV UTF-8\""
        } else if left.contains(['{', '[', '<', '%', '$']) {
            "write `{{ name }}` in the prompt itself: cells and `vars` are not templates"
        } else {
            "write a prompt, or remove the row"
        };
        let has = if left == trimmed { "is only" } else { "contains" };
        warning!(PromptPlaceholder, place(), "the prompt {has} `{left}`"; "{help}")
    })
}

/// A text that is the name of a cell, or that only keeps the place of another: `row.prompt`, `Lorem ipsum dolor`.
fn spelled_out(trimmed: &str, names: &impl Fn() -> Vec<String>) -> Option<String> {
    let column = trimmed.strip_prefix("row.").filter(|column| names().iter().any(|name| name == column));
    let lorem = trimmed.get(..LOREM.len()).filter(|beginning| beginning.eq_ignore_ascii_case(LOREM));
    column.map(|_| trimmed).or(lorem).map(str::to_owned)
}

/// A part of a prompt that is not for the model: an option of another tool, a field on a line of its own, what another program left, or a word for later.
fn slipped_in(trimmed: &str) -> Option<String> {
    let is_option =
        |word: &&str| word.strip_prefix("--").is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()));
    let is_later = |word: &&str| matches!(word.trim_matches(|c: char| !c.is_alphanumeric()), "TODO" | "TBD" | "XXX");
    let is_slip = |word: &&str| is_option(word) || is_later(word) || word.starts_with("___");
    let of_words = || trimmed.split_whitespace().find(is_slip);
    let beginning =
        |line: &str| BEGINNINGS.split('|').find(|mark| line.starts_with(mark)).map(|mark| mark.trim_end().to_owned());
    let field = |line: &str| {
        let name = line.trim_start_matches([' ', '-']).split_once(": ")?.0;
        FIELDS.contains(&name).then(|| format!("{name}:"))
    };
    let has = |[a, b, c]: [u8; 3]| memchr3(a, b, c, trimmed.as_bytes()).is_some();
    let may_be_code = !trimmed.is_ascii() || has(*b"&<\\") || has(*b"%[*");
    let left_over = || LEFT_OVER.split(' ').find(|code| trimmed.contains(code)).map(str::to_owned);
    let may_have_mark = has(*b"-_T") || trimmed.contains('X');
    let has_mark = may_have_mark && ["--", "___", "TODO", "TBD", "XXX"].iter().any(|mark| trimmed.contains(mark));
    let word = has_mark.then(of_words).flatten().map(str::to_owned);
    let may_begin = trimmed.starts_with(|c: char| "#-*•1SHpPu".contains(c));
    let word = word.or_else(|| may_begin.then(|| beginning(trimmed)).flatten());
    let word = word.or_else(|| trimmed.contains("\n# ").then(|| "#".to_owned()));
    word.or_else(|| trimmed.lines().skip(1).find_map(field)).or_else(|| may_be_code.then(left_over).flatten())
}

/// A value that is still to come: a name that is known, in the brackets of any tool or in half of our own (`{brand}`, `[BRAND]`, `<brand>`, `%brand%`,
/// `$brand`), any name in braces, capitals in other brackets, `[insert product]`, or `%s`.
fn unfilled(prompt: &str, names: &[String]) -> Option<String> {
    let known: Vec<String> =
        names.iter().map(|name| name.trim().to_lowercase()).filter(|name| !name.is_empty()).collect();
    let is_known = |inside: &str| {
        let inside = inside.trim().to_lowercase();
        known.contains(&inside)
            || inside.strip_prefix("row.").is_some_and(|rest| !rest.is_empty() && !rest.contains(' '))
    };
    let is_value = |open: char, inside: &str| {
        let is_of = |is: fn(char) -> bool| inside.chars().all(is);
        is_known(inside)
            || match open {
                '{' => !inside.is_empty() && is_of(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | ' ')),
                '%' => false,
                _ if inside.starts_with("insert ") => true,
                // Two words in square brackets are a direction of film: `[WIDE SHOT]`.
                '[' => inside.len() > 2 && is_of(|c| c.is_uppercase() || c == '_'),
                _ => inside.len() > 2 && is_of(|c| c.is_uppercase() || matches!(c, '_' | ' ')),
            }
    };
    for (open, close) in [('{', '}'), ('[', ']'), ('<', '>'), ('%', '%')] {
        for (at, _) in prompt.match_indices(open) {
            let rest = &prompt[at + 1..];
            if let Some(end) = rest.find(close).filter(|end| is_value(open, &rest[..*end])) {
                let start = at - usize::from(prompt[..at].ends_with('$'));
                return Some(prompt[start..=at + 1 + end].to_owned());
            }
        }
    }
    let dollars = names.iter().flat_map(|name| [format!("${name}"), format!("$({name})")]);
    let dollar = dollars.into_iter().find(|form| form.len() > 1 && prompt.contains(form.as_str()));
    let word = || prompt.split_whitespace().find(|word| *word == "%s" || word.starts_with("%("));
    dollar.or_else(|| word().map(str::to_owned))
}

/// An empty cell among the words of a prompt. `earlier` counts the earlier uses of its name.
pub(crate) fn empty_cell(column: &str, prompt: Pointer, earlier: usize) -> Diagnostic {
    let place = Location::Value(prompt, Part::Fragment(format!("row.{column}"), earlier));
    // The help keeps the prompts of rows with the cell: a changed space would cost again.
    warning!(PromptEmptyCell, place, "`row.{column}` is empty in the middle of the prompt";
        "fill the cell, or write {{% if row.{column} | trim %}}{{{{ row.{column} }}}}{{% endif %}} around it and its words; a paid job \
         whose prompt changes, even by a space, costs again")
}

/// Words of the first cell of a row of sums.
const SUMS: [&str; 9] = ["total", "totals", "sum", "subtotal", "summe", "gesamt", "somme", "totale", "suma"];

/// Returns whether a row is one of sums, or repeats the header.
pub(crate) fn is_no_video(cells: &Cells) -> bool {
    let first = cells.iter().map(|(_, cell)| cell.trim()).find(|cell| !cell.is_empty()).unwrap_or_default();
    SUMS.iter().any(|word| word.eq_ignore_ascii_case(first)) || cells.iter().all(|(name, cell)| name == cell.trim())
}

/// A limit for a label that no job has, or that some jobs have in another letter case. It has no effect on jobs with the similar label.
pub(crate) fn limit_beside_similar_label(limit: &Label, jobs: &[Arc<Job>], place: Location) -> Option<Diagnostic> {
    let Label { name, value } = limit;
    let labels = || jobs.iter().flat_map(|job| &job.purchase.labels);
    let values: HashSet<&str> = labels().filter(|(own, _)| *own == name).map(|(_, value)| value.as_str()).collect();
    let names: HashSet<&str> = labels().map(|(name, _)| name.as_str()).collect();
    let has_name = !values.is_empty();
    let (own, known) = if has_name { (value.as_str(), values) } else { (name.as_str(), names) };
    let is_twin = |it: &&str| *it != own && it.trim().eq_ignore_ascii_case(own.trim());
    let similar = || if known.contains(own) { None } else { nearest(own, known.iter().copied()) };
    let meant = known.iter().copied().find(is_twin).or_else(similar)?;
    let meant = if has_name { format!("{name}: {meant}") } else { format!("{meant}: {value}") };
    Some(warning!(LimitUnmatched, place, "the limit for `{name}: {value}` is not for the similar label `{meant}`";
        "write the same label everywhere"))
}

/// An image URL that leads to a web page about the image.
pub(crate) fn page_for_image(spec: &Spec, place: impl FnOnce() -> Location) -> Option<Diagnostic> {
    let leads_to_page = |url: &&String| {
        let Some((_, rest)) = url.split_once("://") else { return false };
        let (host, path) = rest.split_once('/').map_or((rest, ""), |(host, path)| (host, path));
        let direct =
            path.contains("raw=1") || path.contains("dl=1") || path.starts_with("uc?") || path.contains("/uc?");
        let is_page = PAGES.iter().any(|page| format!("{host}/{path}").starts_with(page));
        // A cell was empty or had two URLs, or the host is this machine.
        let is_cut = path.is_empty() || path.ends_with('/') || [",http", ";http"].iter().any(|next| url.contains(next));
        !direct && is_page || is_cut || ["localhost", "127."].iter().any(|own| host.starts_with(own))
    };
    let url = spec.image.iter().find(leads_to_page)?;
    Some(warning!(ImageIsAPage, place(), "`{url}` does not lead to an image";
        "link one image itself, on a public host, with a URL that ends in .png or .jpg"))
}

/// A video's file with the ending of something else.
pub(crate) fn no_mp4(path: &OutputPath, place: Location) -> Option<Diagnostic> {
    let is_mp4 = path.as_str().to_ascii_lowercase().ends_with(".mp4");
    (!is_mp4).then(|| warning!(FileIsAnMp4, place, "`{path}` will contain an MP4"; "write a name that ends in .mp4"))
}

/// Strings that a comment cuts off: `prompt: A sign saying #1` is "A sign saying". A real comment has a space after `#`.
pub(crate) fn cut_by_comments(text: &str) -> Vec<Diagnostic> {
    if !text.contains(" #") {
        return Vec::new();
    }
    let (mut found, mut start) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split('\n')) {
        if let Some((at, cut)) = cut(line) {
            let column = line[..at].chars().count() + 1;
            let cut = warning!(TextCutOff, Location::At(number, column),
                "`{cut}` starts a YAML comment, which cuts off the string";
                "put quotes around the string, or a space after the `#` of a comment");
            found.push((start + at, cut));
        }
        start += line.len() + 1;
    }
    // A `#` inside a quoted or block string is no comment, which only a parser can decide.
    let texts = if found.is_empty() { Vec::new() } else { Marks::of_texts(text) };
    let is_inside = |at: usize| texts.iter().any(|text| text.contains(&at));
    found.into_iter().filter(|(at, _)| !is_inside(*at)).map(|(_, diagnostic)| diagnostic).collect()
}

/// Scalars that YAML reads in an unexpected way: paths in double quotes, and tags. A second parser finds them, so it runs only on suspicion.
pub(crate) fn odd_scalars(text: &str) -> Vec<Diagnostic> {
    if !text.contains(['\\']) && !text.contains("!!") {
        return Vec::new();
    }
    let events = Parser::new_from_str(text).map_while(Result::ok);
    let found = events.filter_map(|(event, span)| {
        let Event::Scalar(value, style, _, tag) = event else { return None };
        let (written, place) = (&text[span.byte_range()?], Location::At(span.start.line(), span.start.col() + 1));
        let odd_tag = tag.filter(|tag| tag.handle() == CORE && !PLAIN_TAGS.contains(&tag.suffix()));
        Some(if let Some(tag) = odd_tag {
            error!(Yaml, place, "the tag `!!{}` is not supported", tag.suffix(); "remove the tag, and write plain text")
        } else if style == ScalarStyle::DoubleQuoted && value.contains(char::is_control) && has_windows_path(written) {
            warning!(EscapeInPath, place,
                "a `\\` in double quotes is an escape, here of a line break, a tab, or another control character";
                "use single quotes, or `/` in a path")
        } else {
            return None;
        })
    });
    found.collect()
}

/// Returns whether a quoted string has a word such as `C:\new` or `prompts\new.txt`.
fn has_windows_path(written: &str) -> bool {
    let mut words = written.split(|c: char| c.is_whitespace() || "\"'`()".contains(c));
    words.any(|word| {
        let drive = word.split_once(":\\").is_some_and(|(drive, rest)| drive.len() == 1 && !rest.starts_with('\\'));
        let extension = word.rsplit_once('.').filter(|(stem, _)| stem.contains('\\')).map(|(_, extension)| extension);
        drive || extension.is_some_and(|extension| matches!(extension.len(), 2..=4) && !extension.contains('\\'))
    })
}

/// The first invisible character of a string, as a message names it, and the string without any.
pub(crate) fn invisible(text: &str) -> Option<(String, String)> {
    let is_invisible = |c: char| matches!(c, '\u{a0}' | '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202f}' | '\u{2060}'..='\u{206f}' | '\u{3000}' | '\u{feff}');
    let first = if text.is_ascii() { None } else { text.chars().find(|c| is_invisible(*c)) }?;
    Some((format!("U+{:04X}", u32::from(first)), text.replace(is_invisible, "")))
}

/// The position of a comment that seems to be a part of the string before it, with its first characters.
fn cut(line: &str) -> Option<(usize, &str)> {
    let start = line.find(": ").filter(|_| !line.trim_start().starts_with('#')).map(|colon| colon + 2)?;
    let value = line[start..].trim_start();
    let is_plain = value.contains(' ') && !value.starts_with(['"', '\'', '{', '[', '|', '>', '#', '&', '*', '!']);
    let at = line.len() - value.len() + value.find(" #").filter(|_| is_plain)? + 1;
    let word = line[at..].split_whitespace().next()?;
    // Of one word before it, as of a model or a number, nothing was cut; a prompt may have been.
    let is_prompt = line[..start].trim_start_matches([' ', '-']).starts_with("prompt:");
    let has_words = is_prompt || line[start..at].trim().contains(' ');
    (word.len() > 1 && has_words).then_some((at, word))
}

const QUOTES: [char; 9] = ['“', '”', '„', '‟', '«', '»', '‘', '’', '‚'];

/// The text between typographic quotes, which would be a part of it.
pub(crate) fn typographic(value: &str) -> Option<&str> {
    (value.starts_with(QUOTES) && value.ends_with(QUOTES)).then(|| value.trim_matches(QUOTES))
}

/// The diagnostic of a text in typographic quotes.
pub(crate) fn typographic_quotes(value: &str, place: Location) -> Diagnostic {
    let (first, last) = (value.chars().next().unwrap_or_default(), value.chars().last().unwrap_or_default());
    error!(TypographicQuotes, place, "typographic quotes `{first}` and `{last}` are part of the string";
        "write \" instead, or remove the quotes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(prompt: &str) -> Option<String> {
        let names = || vec!["brand".to_owned(), "Prompt Text".to_owned()];
        unfilled_placeholder(prompt, names, || Location::File)
            .map(|diagnostic| diagnostic.message.split('`').nth(1).expect("a name").to_owned())
    }

    #[test]
    fn unfilled_placeholder_is_reported() {
        for (prompt, expected) in [
            ("{{ brand }} mug", Some("{{")),
            ("{% if x %}", Some("{%")),
            ("a {brand} mug", Some("{brand}")),
            ("a ${brand} mug", Some("${brand}")),
            ("a { brand } mug", Some("{ brand }")),
            ("a {Brand} mug", Some("{Brand}")),
            ("a { row.title } mug", Some("{ row.title }")),
            ("a <brand> mug", Some("<brand>")),
            ("a %brand% mug", Some("%brand%")),
            ("a $brand mug", Some("$brand")),
            ("it is 5 < 6 and 100 % {", None),
            ("a [BRAND] mug", Some("[BRAND]")),
            ("a [Prompt Text]", Some("[Prompt Text]")),
            ("#REF!", Some("#REF!")),
            ("a mug, #N/A", Some("#N/A")),
            ("=B2", Some("=B2")),
            ("https://example.com/brief", Some("https://example.com/brief")),
            ("Same as above", Some("Same as above")),
            ("a mug &amp; a lamp", Some("&amp;")),
            ("a mug<br>a lamp", Some("<br>")),
            ("a mug\\na lamp", Some("\\n")),
            ("a mug & a lamp, 5 % of it; 3 < 4 [slow] \\o/", None),
            ("a sign: https://example.com", None),
            ("n/a", Some("n/a")),
            ("TBD", Some("TBD")),
            ("a wide shot [slow], #1 of {}; 100 %", None),
            ("a {product} on {0}", Some("{product}")),
            ("{0} turns", Some("{0}")),
            ("a {BRAND NAME} mug", Some("{BRAND NAME}")),
            ("[insert product here] turns", Some("[insert product here]")),
            ("%s turns", Some("%s")),
            ("%(name)s turns", Some("%(name)s")),
            ("a $(brand) mug", Some("$(brand)")),
            ("@prompts/mug.txt", Some("@prompts/mug.txt")),
            ("!include prompts/mug.txt", Some("!include prompts/mug.txt")),
            ("- A leaf falls", Some("-")),
            ("# Spring", Some("#")),
            ("A dog\n# keep it short\nruns", Some("#")),
            ("A dog /* was blue */ runs", Some("/*")),
            ("Sure! A dog runs", Some("Sure!")),
            ("[WIDE SHOT] a mug [CUT TO] a lamp [---]", None),
            ("a [PRODUCT_NAME]", Some("[PRODUCT_NAME]")),
            ("row.brand", Some("row.brand")),
            ("lorem Ipsum dolor", Some("lorem Ipsum")),
            ("none of them moves", None),
        ] {
            assert_eq!(left(prompt).as_deref(), expected, "{prompt}");
        }
    }

    #[test]
    fn string_cut_by_a_comment_is_reported() {
        let cut = |text: &str| cut_by_comments(text).into_iter().map(|diagnostic| diagnostic.place).collect::<Vec<_>>();
        assert_eq!(cut("prompt: The #1 mug in town"), [Location::At(1, 13)]);
        assert_eq!(cut("- prompt: A sign saying #1 in town\n"), [Location::At(1, 25)]);
        for fine in [
            "prompt: \"A sign saying #1\"",
            "prompt: A sign # the first one",
            "model: alpha-2 #1",
            "prompt: |\n  a sign: it says #1\nid: a",
            "prompt: >-\n  a sign: it says #1\n\n  and: that says #2\n",
            "# prompt: A sign saying #1",
            "prompt: A sign saying#1",
            "- { id: hero, prompt: \"A foam finger that says #1 fan\" }",
            "{\"duration\": 5, \"prompt\": \"We are the #1 team\"}",
            "prompt: \"A man\n  saying: he is #1 there\"",
            "jobs:\n  - >-\n    a sign: it says #1",
        ] {
            assert_eq!(cut(fine), [], "{fine}");
        }
    }
}
