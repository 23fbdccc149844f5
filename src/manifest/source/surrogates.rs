//! Letters in two halves, as JSON writes them (`\\ud83d\\ude00`, RFC 8259 §7), in the one escape that YAML has for them.

/// The text with each pair of halves as one escape of the same letter; nothing if it has no pair.
pub(crate) fn joined(text: &str) -> Option<String> {
    let mut parts = text.split("\\u");
    let mut whole = parts.next()?.to_owned();
    let (mut high, mut is_joined): (Option<u32>, bool) = (None, false);
    for part in parts {
        // A backslash before it makes it a backslash and a `u`.
        let backslashes = whole.len() - whole.trim_end_matches('\\').len();
        let is_escape = high.is_some() || backslashes % 2 == 0;
        let unit = part.get(..4).filter(|_| is_escape).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match (high.take(), unit) {
            (Some(high), Some(low @ 0xdc00..=0xdfff)) => {
                let letter = 0x1_0000_u32 + ((high - 0xd800_u32) << 10) + (low - 0xdc00);
                whole.push_str(&format!("\\U{letter:08x}{}", &part[4..]));
                is_joined = true;
            }
            (None, Some(unit @ 0xd800..=0xdbff)) if part.len() == 4 => high = Some(unit),
            (before, _) => {
                // A half without its other half is left as it is, for the parser to refuse.
                if let Some(before) = before {
                    whole.push_str(&format!("\\u{before:04x}"));
                }
                whole.push_str("\\u");
                whole.push_str(part);
            }
        }
    }
    if let Some(high) = high {
        whole.push_str(&format!("\\u{high:04x}"));
    }
    is_joined.then_some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_become_one_letter_and_all_else_stays() {
        assert_eq!(joined(r#"{"a": "\ud83d\ude00 x \u00e9"}"#).as_deref(), Some(r#"{"a": "\U0001f600 x \u00e9"}"#));
        assert_eq!(joined(r"\uD83D\uDE00\ud83d\ude01").as_deref(), Some(r"\U0001f600\U0001f601"));
        for alone in [r"\\ud83d\ude00", r"\u00e9", r"\ud83d", r"\ud83d x\ude00", r"\ude00\ud83d", "", r"\u"] {
            assert_eq!(joined(alone), None, "{alone}");
        }
    }
}
