//! Texts for users: untrusted text made safe for terminal, log, table, and page; errors with their causes; enums with names.

use std::borrow::Cow;
use std::error::Error;

/// Returns whether a character controls its display instead of being shown: control characters (escape sequences begin
/// with one), and those that change the direction of the following text (Unicode Bidirectional Algorithm §2). Direction
/// marks that letters carry are allowed.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text on one line, without control characters: it can't imitate a line of shotlist.
pub(crate) fn one_line(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
        c if steers(c) => '\u{fffd}',
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(shown).collect()
}

/// A text without control characters but line breaks and tabs.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    let is_meant = |c: char| !steers(c) || matches!(c, '\n' | '\t');
    if text.chars().all(is_meant) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|c| if is_meant(c) { c } else { '\u{fffd}' }).collect()
}

/// The same JSON value with each control character escaped, which is safe to show.
pub(crate) fn json(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        // Control characters occur only inside strings, except for breaks between values.
        if steers(c) && c != '\n' {
            plain.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            plain.push(c);
        }
    }
    plain
}

/// The shortest line of a prompt that is looked for, in bytes: a shorter one may be a common word.
const MIN_LINE: usize = 4;
/// Characters of a line of a prompt that are compared.
const MAX_PREFIX_CHARS: usize = 200;

/// The output of a hook before the first line of the prompt in it, which may be cut.
pub(crate) fn until_prompt(output: &str, prompt: Option<&str>) -> String {
    let lines = prompt.into_iter().flat_map(str::lines).map(str::trim).filter(|line| line.len() >= MIN_LINE);
    let beginnings = lines.map(|line| line.chars().take(MAX_PREFIX_CHARS).collect::<String>());
    match beginnings.filter_map(|beginning| output.find(&beginning)).min() {
        Some(at) => format!("{}[the prompt]", &output[..at]),
        None => output.to_owned(),
    }
}

/// The maximum length of one text, in bytes: an unknown name may be as long as its file.
const MAX_TEXT: usize = 2000;

/// Cuts the middle out of a text that is too long.
pub(crate) fn shortened(text: String) -> String {
    if text.len() <= MAX_TEXT {
        return text;
    }
    let (first, last) =
        (text.floor_char_boundary(MAX_TEXT * 3 / 4), text.ceil_char_boundary(text.len() - MAX_TEXT / 4));
    format!("{} … {}", &text[..first], &text[last..])
}

/// An error with all of its causes, outermost first.
pub(crate) fn with_causes(error: &dyn Error) -> String {
    causes(error).map_or_else(|| error.to_string(), |causes| format!("{error}: {causes}"))
}

/// The causes of an error without itself, outermost first; nothing if it has none.
pub(crate) fn causes(error: &dyn Error) -> Option<String> {
    let texts = std::iter::successors(error.source(), |cause| (*cause).source()).map(ToString::to_string);
    let texts: Vec<String> = texts.collect();
    (!texts.is_empty()).then(|| texts.join(": "))
}

/// An enumeration with its values, their names, and the value of a name.
macro_rules! named {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$attribute])*
        $visibility enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl $name {
            /// Every value, in this order.
            $visibility const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Its name.
            $visibility const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }

            /// The value with this name.
            $visibility fn named(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|value| value.name() == name)
            }
        }
    };
}

pub(crate) use named;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_is_shown_and_what_is_written_stays() {
        let text = "a\u{0}b\u{1b}[31mc\u{202e}d\u{2066}e\r\nf\tg\u{9b}h";
        assert_eq!(one_line(text), "a\u{fffd}b\u{fffd}[31mc\u{fffd}d\u{fffd}e f g\u{fffd}h");
        assert_eq!(lines("a\u{1b}b\nc\td"), "a\u{fffd}b\nc\td");
        for text in ["שלום \u{200f}!", "مرحبا", "Zoë 🎬", "<script>"] {
            assert_eq!((one_line(text), lines(text)), (text.to_owned(), text.into()));
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        for text in ["a\u{202e}b\u{9b}\u{7f}", "plain"] {
            let written = serde_json::to_string_pretty(&[text]).expect("JSON");
            let plain = json(&written);
            assert!(!plain.chars().any(|c| steers(c) && c != '\n'), "{plain}");
            assert_eq!(serde_json::from_str::<Vec<String>>(&plain).expect("JSON"), [text]);
        }
    }
}
