//! A response body as JSON, in the forms that servers write beside RFC 8259.

use std::borrow::Cow;

use serde_json::Value;

/// The most digits of an integer that a [`Value`] certainly holds exactly: `u64::MAX` has 20.
const MAX_INTEGER: usize = 19;

/// The value of a body. A byte order mark is skipped, `NaN` and `Infinity` (Python's `json.dumps`) are read as null, and integers beyond 64 bits
/// as strings of the same digits: a rounded task ID would name another task.
pub(super) fn value(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?;
    serde_json::from_str(&strict(text.trim_start_matches('\u{feff}'))).ok()
}

/// The same in strict JSON.
fn strict(text: &str) -> Cow<'_, str> {
    let is_plain = |token: &str| replacement(token).is_none();
    if tokens(text).all(|(token, is_quoted)| is_quoted || is_plain(token)) {
        return text.into();
    }
    let pieces = tokens(text).map(|(token, is_quoted)| match replacement(token) {
        Some(other) if !is_quoted => other,
        _ => token.into(),
    });
    pieces.collect::<String>().into()
}

fn replacement(token: &str) -> Option<Cow<'_, str>> {
    let digits = token.strip_prefix('-').unwrap_or(token);
    match token {
        "NaN" | "Infinity" | "-Infinity" => Some("null".into()),
        _ if digits.len() > MAX_INTEGER && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(format!("\"{token}\"").into())
        }
        _ => None,
    }
}

/// The text in pieces: quoted strings, words and numbers, and what is between them.
fn tokens(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let first = rest.chars().next()?;
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
        let end = match first {
            '"' => end_of_string(rest),
            _ if is_word(first) => rest.find(|c| !is_word(c)),
            _ => rest.find(|c| c == '"' || is_word(c)),
        };
        let (token, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind;
        Some((token, first == '"'))
    })
}

/// The index behind the closing quotation mark of a string.
fn end_of_string(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    let closing = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    });
    closing.map(|at| at + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_servers_write_beside_the_standard() {
        for (body, expected) in [
            ("\u{feff}{\"id\": \"t\"}", json!({ "id": "t" })),
            (
                r#"{"progress": NaN, "eta":Infinity,"x":[-Infinity]}"#,
                json!({ "progress": null, "eta": null, "x": [null] }),
            ),
            (r#"{"id": 10000000000000000000000001}"#, json!({ "id": "10000000000000000000000001" })),
            (r#"{"id": 18446744073709551615}"#, json!({ "id": "18446744073709551615" })),
            (r#"{"id": 1844674407370955161}"#, json!({ "id": 1_844_674_407_370_955_161_u64 })),
            (
                r#"{"id": "NaN \" NaN 12345678901234567890123", "e": NaN}"#,
                json!({ "id": "NaN \" NaN 12345678901234567890123", "e": null }),
            ),
            (r#"{"p": 1.00000000000000000000000001}"#, json!({ "p": 1.0 })),
        ] {
            assert_eq!(value(body.as_bytes()), Some(expected), "{body}");
        }
        for body in ["", "NaN of it", "{\"id\": \"t", "\"\\"] {
            assert_eq!(value(body.as_bytes()), None, "{body}");
        }
    }

    proptest! {
        #[test]
        fn standard_json_is_read_as_it_is(words in prop::collection::vec("[\"\\\\a-zN0-9é]{0,30}", 0..5), number in any::<i64>()) {
            let all = json!({ "words": words, "number": number });
            let text = all.to_string();
            prop_assert_eq!(strict(&text).len() >= text.len(), true);
            if number.to_string().len() <= MAX_INTEGER {
                prop_assert_eq!(value(text.as_bytes()), Some(all));
            }
        }
    }
}
