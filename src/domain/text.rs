//! Texts for users: untrusted text made safe for terminal, log, table, and page; errors with their causes; enums with names.

use std::borrow::Cow;
use std::error::Error;

use unicode_normalization::UnicodeNormalization as _;

/// Returns whether a character controls its display instead of being shown: control characters (escape sequences begin
/// with one), and those that change the direction of the following text (Unicode Bidirectional Algorithm §2). Direction
/// marks that letters carry are allowed.
pub(crate) fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A text in a URL (RFC 3986 §2.1): letters, digits, and these other characters stay.
pub(crate) fn percent_encoded(text: &str, plain: &[u8]) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
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
    let first = beginnings.filter_map(|beginning| output.find(&beginning)).min();
    first.map_or_else(|| output.to_owned(), |at| format!("{}[the prompt]", &output[..at]))
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

/// `1 job`, `2 jobs`.
pub(crate) fn count<N: TryInto<u64>>(number: N, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    let ending = if noun.ends_with("ch") { "es" } else { "s" };
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}{ending}") }
}

/// A word as the shell of this system takes it for one, whatever is in it.
pub(crate) fn quoted(word: &str) -> String {
    // Git Bash and its kin name their shell on Windows, too.
    if cfg!(windows) && std::env::var_os("SHELL").is_none() { quoted_for_windows(word) } else { quoted_for_posix(word) }
}

/// A word for `cmd` and PowerShell, which agree on double quotes. In these, one of the two expands or ends at few characters; for a word with one of
/// them, this is text that both refuse: a command that is read differently could buy something else.
fn quoted_for_windows(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./\\:=+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    let is_special = |c: char| "\"$`%!\u{201c}\u{201d}\u{201e}".contains(c) || steers(c);
    if word.contains(is_special) {
        return "<quote this value>".to_owned();
    }
    // A program takes the last backslash for an escape of the quote.
    let backslashes = word.len() - word.trim_end_matches('\\').len();
    format!("\"{word}{}\"", "\\".repeat(backslashes))
}

/// A word for a POSIX shell. Control characters are written by their numbers, as bash, zsh, and ksh read them: a terminal would not show them,
/// and would not take them back.
fn quoted_for_posix(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    // zsh replaces a word that begins with `=` by a path.
    if !word.is_empty() && !word.starts_with('=') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.chars().any(steers) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    let escaped = word.bytes().fold(String::new(), |mut text, byte| {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
        text
    });
    format!("$'{escaped}'")
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
                match name {
                    $($text => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use named;

/// Displays types as an expression about them, with the width that the format has.
macro_rules! displayed {
    ($($type:ident($it:ident): $shown:expr),+ $(,)?) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $it = self;
                std::fmt::Display::fmt(&$shown, f)
            }
        }
    )+};
}
pub(crate) use displayed;

/// Returns a string with Unicode NFC, lowercase letters, single spaces, plain quotes and dashes, and no zero-width characters.
pub fn normalized(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split(is_space) {
        let before = plain.len();
        if word.is_ascii() {
            plain.extend(word.chars().map(|c| if c == '`' { '\'' } else { c.to_ascii_lowercase() }));
        } else {
            for c in word.nfc().filter(|c| !is_invisible(*c)) {
                match c {
                    '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{00b4}' | '\u{0060}' => plain.push('\''),
                    '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}' | '\u{00ab}' | '\u{00bb}' => plain.push('"'),
                    '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
                    '\u{2026}' => plain.push_str("..."),
                    c => plain.extend(c.to_lowercase()),
                }
            }
        }
        if plain.len() > before {
            plain.push(' ');
        }
    }
    plain.truncate(plain.trim_end().len());
    // Lowercase letters may compose again.
    if plain.is_ascii() { plain } else { plain.nfc().collect() }
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether a character takes no room and joins or breaks nothing that is read: zero-width spaces and joiners, the soft hyphen, the
/// byte order mark, and variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Characters that start a formula in a spreadsheet, half width and full width.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
/// Characters that end a cell for some reader. Quotes don't protect from a reader with another separator.
const ENDS: [char; 4] = [';', '\t', '\n', '\r'];

/// Returns whether a spreadsheet reads a string as a time of day. An aspect ratio is not one.
fn looks_like_a_time(text: &str) -> bool {
    let is_short_number = |part: &str| matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
    text.contains(':') && text.split(':').all(is_short_number)
}

/// Returns a cell without a formula for any spreadsheet and any separator, and without control characters: some readers drop
/// them, which moves a formula to the start of the cell.
pub(crate) fn cell(text: &str) -> Cow<'_, str> {
    // Inside a cell, these characters are text.
    let is_formula = text.starts_with(FORMULA);
    let is_risky = |c: char| ENDS.contains(&c) || steers(c);
    if looks_like_a_time(text) {
        return format!("'{text}").into();
    }
    if !is_formula && !text.contains(is_risky) {
        return text.into();
    }
    let mut safe = String::with_capacity(text.len() + 2);
    let mut begins = true;
    for (at, c) in text.char_indices() {
        if begins && (FORMULA.contains(&c) || (at == 0 && ENDS[1..].contains(&c))) {
            safe.push('\'');
        }
        begins = ENDS.contains(&c);
        safe.push(if steers(c) && !begins { '\u{fffd}' } else { c });
    }
    safe.into()
}

/// The text of a cell without the apostrophe that [`cell`] puts in front.
pub(crate) fn as_written(text: &str) -> &str {
    let is_ours = |rest: &&str| rest.starts_with(FORMULA) || looks_like_a_time(rest);
    text.strip_prefix('\'').filter(is_ours).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn shell_reads_each_quoted_word_unchanged() {
        let words = [
            "a.yaml",
            "my list.yaml",
            "it's",
            "",
            "$(touch x)",
            "t1; touch y #",
            "ü",
            "a\nb",
            "\u{1b}[2J\\'",
            "*",
            "=ls",
        ];
        for word in words {
            let shown = quoted_for_posix(word);
            assert!(!shown.contains(|c: char| c.is_control()), "{shown:?}");
            // `$'…'` is of bash; the others are of every shell.
            let shell = if shown.starts_with('$') { "bash" } else { "sh" };
            let script = format!("printf '%s|' {shown}");
            let output = std::process::Command::new(shell).args(["-c", &script]).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), format!("{word}|"), "{shown}");
        }
    }

    #[test]
    fn odd_word_has_double_quotes_on_windows() {
        for (word, expected) in [
            ("a.yaml", "a.yaml"),
            ("C:\\videos\\a.yaml", "C:\\videos\\a.yaml"),
            ("my list.yaml", "\"my list.yaml\""),
            ("a&b", "\"a&b\""),
            ("a,b", "\"a,b\""),
            ("@choices.json", "\"@choices.json\""),
            ("", "\"\""),
            ("it's", "\"it's\""),
            (r"C:\my dir\", r#""C:\my dir\\""#),
            ("it's $5", "<quote this value>"),
            ("50%", "<quote this value>"),
            ("a\nb", "<quote this value>"),
        ] {
            assert_eq!(quoted_for_windows(word), expected);
        }
    }

    #[test]
    fn control_characters_are_escaped_and_text_stays() {
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

    #[test]
    fn invisible_differences_are_removed() {
        let same = [
            "It's a \"red\" mug - top, caf\u{e9}...",
            "it\u{2019}s a \u{201c}Red\u{201d} mug \u{2013} top, cafe\u{301}\u{2026}",
            " It's  a \"red\"\r\nmug\u{a0}- top,\tcaf\u{e9}... ",
            "\u{feff}It's a \"r\u{200b}ed\" mug - top, caf\u{e9}...\u{200d}",
            "IT'S A \u{ab}RED\u{bb} MUG \u{2014} TOP, CAF\u{c9}...",
        ];
        for text in same {
            assert_eq!(normalized(text), normalized(same[0]), "{text:?}");
        }
        for other in ["Its a red mug", "a red mug", "a red  mugs", "", "-"] {
            assert_ne!(normalized(other), normalized(same[0]), "{other}");
        }
        assert_ne!(normalized("a b"), normalized("ab"));
    }

    proptest::proptest! {
    /// ASCII takes a shorter way, with the same result as beside another letter.
    #[test]
    fn ascii_is_normalized_as_any_text(text in "[ -~\t\n]{0,40}") {
        let words: Vec<&str> = text.split(is_space).collect();
        let alone: Vec<String> = words.iter().map(|word| normalized(word)).collect();
        proptest::prop_assert_eq!(normalized(&(words.join("é ") + "é")), alone.join("é ") + "é");
    }

    #[test]
    fn normalized_strings_stay_as_they_are(text in ".*") {
        let once = normalized(&text);
        proptest::prop_assert_eq!(normalized(&once), once);
    }
    }

    #[test]
    fn no_cell_is_run_as_a_formula() {
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "=HYPERLINK(\"http://x\")", "＝1+1"] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        for (time, safe) in [("16:9", "'16:9"), ("9:16", "'9:16"), ("16:09:00", "'16:09:00")] {
            assert_eq!(cell(time), safe);
        }
        for plain in ["", "a=b", "1920:1080", ":", "é", " =1", "a; b", "two\nlines", "1-2"] {
            assert_eq!(cell(plain), plain);
        }
        // After a separator of another reader, and after characters that some readers drop.
        for (text, safe) in [
            ("a;=1+2;b", "a;'=1+2;b"),
            ("a\n-1\t@x", "a\n'-1\t'@x"),
            ("\t=1", "'\t'=1"),
            ("\u{0}=1+1", "\u{fffd}=1+1"),
            ("a\u{1b}[31m\u{202e}b", "a\u{fffd}[31m\u{fffd}b"),
        ] {
            assert_eq!(cell(text), safe);
        }
    }
}
