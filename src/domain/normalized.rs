//! Normalized strings: without invisible differences, and without those that a spreadsheet makes by itself.

use unicode_normalization::UnicodeNormalization as _;

/// Returns a string with Unicode NFC, lowercase letters, single spaces, plain quotes and dashes, and no zero-width characters.
pub fn normalized(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for word in text.split(is_space) {
        let before = plain.len();
        for c in word.nfc().filter(|c| !is_invisible(*c)) {
            match c {
                '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{00b4}' | '\u{0060}' => plain.push('\''),
                '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{2036}' | '\u{00ab}' | '\u{00bb}' => plain.push('"'),
                '\u{2010}'..='\u{2015}' | '\u{2212}' => plain.push('-'),
                '\u{2026}' => plain.push_str("..."),
                c => plain.extend(c.to_lowercase()),
            }
        }
        if plain.len() > before {
            plain.push(' ');
        }
    }
    plain.truncate(plain.trim_end().len());
    // Lowercase letters may compose anew.
    plain.nfc().collect()
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether a character takes no room and joins or breaks nothing that is read: zero-width spaces and joiners, the soft hyphen, the
/// byte order mark, and variation selectors.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{00ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_that_no_one_sees_are_removed() {
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
        #[test]
        fn normalized_strings_stay_as_they_are(text in ".*") {
            let once = normalized(&text);
            proptest::prop_assert_eq!(normalized(&once), once);
        }
    }
}
