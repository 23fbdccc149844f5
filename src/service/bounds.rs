//! Bounds on the stored parts of a response, so no response can fill a ledger, a report, or a log, or be too deep to read again.
//!
//! The interface has no lengths (§2.3). These bounds are far above usual lengths, and below those of a spreadsheet's cell.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::domain::TaskId;

/// The maximum length of a message, a code, and a state, in characters. A truncated one is marked.
const MESSAGE: usize = 2000;
const WORD: usize = 200;
/// The maximum length of a raw response, in bytes of JSON, and its maximum depth.
const RAW: usize = 16 * 1024;
const MAX_DEPTH: usize = 32;
/// The maximum length of a task ID and a URL, in bytes, as of servers and proxies.
const ADDRESS: usize = 8 * 1024;

/// A message for the user.
pub(super) fn message(text: &str) -> String {
    cut(text, MESSAGE)
}

/// A code, or a word for a state.
pub(super) fn word(text: &str) -> String {
    cut(text, WORD)
}

/// A raw response, or the start of its text if it is too long or too deep.
pub(super) fn raw(value: &Value) -> Value {
    // Parsed within the depth, so it can be written within the stack.
    let text = value.to_string();
    if text.len() <= RAW && is_flat(value, MAX_DEPTH) { value.clone() } else { raw_text(&text) }
}

/// The start of a body without JSON: text, or else its bytes as `{"base64": …}`.
pub(super) fn raw_body(body: &[u8]) -> Value {
    let bytes = || json!({ "base64": STANDARD.encode(&body[..body.len().min(RAW / 4 * 3)]) });
    std::str::from_utf8(body).map_or_else(|_| bytes(), raw_text)
}

fn raw_text(text: &str) -> Value {
    let end = text.floor_char_boundary(RAW);
    text[..end].into()
}

/// A usable task ID: neither blank, nor too long for a URL, nor a dot segment (RFC 3986 §3.3).
pub(super) fn task_id(text: &str) -> Option<TaskId> {
    if text.len() <= ADDRESS && !matches!(text, "." | "..") { TaskId::new(text) } else { None }
}

/// A URL, unless it is too long.
pub(super) fn address(text: &str) -> Option<String> {
    (text.len() <= ADDRESS).then(|| text.to_owned())
}

fn cut(text: &str, most: usize) -> String {
    text.char_indices().nth(most).map_or_else(|| text.to_owned(), |(end, _)| format!("{}…", &text[..end]))
}

fn is_flat(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_flat(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| is_flat(field, depth - 1)),
        _ => true,
    }
}

/// The maximum number of digits of an exact integer in a [`Value`]: `u64::MAX` has 20.
const MAX_INTEGER: usize = 19;

/// The value of a body. A byte order mark is skipped, `NaN` and `Infinity` (Python's `json.dumps`) are read as null, and integers beyond 64 bits
/// as strings of the same digits: a rounded task ID would name another task.
pub(super) fn json_value(body: &[u8]) -> Option<Value> {
    let text = std::str::from_utf8(body).ok()?.trim_start_matches('\u{feff}');
    let is_long = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    let exact = || serde_json::from_str(text).ok();
    // Almost every body is strict already.
    let plain = if body.windows(MAX_INTEGER + 1).any(is_long) { None } else { exact() };
    plain.or_else(|| serde_json::from_str(&strict(text)).ok())
}

/// The body as strict JSON.
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

/// The tokens of a text: quoted strings, words, numbers, and the characters between them.
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
    fn usual_response_is_kept_unchanged() {
        let error = json!({ "message": "no", "code": { "kind": [1, null] } });
        assert_eq!(raw(&error), error);
        assert_eq!((message("no"), word("queued")), ("no".to_owned(), "queued".to_owned()));
        assert_eq!(task_id("a/b é"), TaskId::new("a/b é"));
    }

    #[test]
    fn long_or_deep_response_is_cut() {
        assert_eq!(message(&"é".repeat(1_000_000)).chars().count(), MESSAGE + 1);
        assert!(raw(&json!("é".repeat(1_000_000))).to_string().len() < RAW + 8);
        assert!(raw_body(&vec![0xff; 1_000_000]).to_string().len() < RAW + 20);
        assert_eq!(raw_body(b"\x1f\x8b\x08 id"), json!({ "base64": "H4sIIGlk" }));
        let deep = (0..127).fold(json!(1), |inner, _| json!({ "x": inner }));
        assert!(raw(&deep).is_string(), "as deep as a parser goes");
        assert!(raw(&json!({ "x": deep, "y": "z".repeat(RAW) })).to_string().len() < 2 * RAW);
        for bad in [".", "..", " ", "", &"x".repeat(ADDRESS + 1)] {
            assert_eq!(task_id(bad), None, "{bad:.9}");
        }
        assert_eq!(address(&"x".repeat(ADDRESS + 1)), None);
    }

    #[test]
    fn nonstandard_headers_of_servers_are_read() {
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
            assert_eq!(json_value(body.as_bytes()), Some(expected), "{body}");
        }
        for body in ["", "NaN of it", "{\"id\": \"t", "\"\\"] {
            assert_eq!(json_value(body.as_bytes()), None, "{body}");
        }
    }

    proptest! {
        #[test]
        fn standard_json_is_read_as_it_is(words in prop::collection::vec("[\"\\\\a-zN0-9é]{0,30}", 0..5), number in any::<i64>()) {
            let all = json!({ "words": words, "number": number });
            let text = all.to_string();
            prop_assert_eq!(strict(&text).len() >= text.len(), true);
            if number.to_string().len() <= MAX_INTEGER {
                prop_assert_eq!(json_value(text.as_bytes()), Some(all));
            }
        }
    }
}
