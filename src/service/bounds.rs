//! Bounds on the stored parts of a response, applied on arrival, so no response can fill a ledger, a report, or a log,
//! or be too deep to be read again.
//!
//! The interface gives no lengths (§2.3). These are many times the usual ones, and small beside a spreadsheet's cell.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::domain::TaskId;

/// The longest message, code and word for a state that is kept, in characters; what is cut off is marked.
const MESSAGE: usize = 2000;
const WORD: usize = 200;
/// The longest answer that is kept as it came, in bytes of JSON, and the deepest.
const RAW: usize = 16 * 1024;
const MAX_DEPTH: usize = 32;
/// The longest task id and address that are taken, in bytes: servers and proxies take no longer ones.
const ADDRESS: usize = 8 * 1024;

/// A message for the user.
pub(super) fn message(text: &str) -> String {
    cut(text, MESSAGE)
}

/// A code, or a word for a state.
pub(super) fn word(text: &str) -> String {
    cut(text, WORD)
}

/// An answer as it came, or the beginning of its text if it is too long or too deep.
pub(super) fn raw(value: &Value) -> Value {
    if is_flat(value, MAX_DEPTH) {
        let text = value.to_string();
        return if text.len() <= RAW { value.clone() } else { raw_text(&text) };
    }
    // No deeper than it was parsed, so writing it needs no more of the stack.
    raw_text(&value.to_string())
}

/// The beginning of a body that is not JSON: text, or otherwise its bytes as `{"base64": …}`.
pub(super) fn raw_body(body: &[u8]) -> Value {
    let bytes = || json!({ "base64": STANDARD.encode(&body[..body.len().min(RAW / 4 * 3)]) });
    std::str::from_utf8(body).map_or_else(|_| bytes(), raw_text)
}

fn raw_text(text: &str) -> Value {
    let end = text.floor_char_boundary(RAW);
    text[..end].into()
}

/// A task id that can be asked about: neither blank, nor too long for an address, nor one that means another place in it
/// (RFC 3986 §3.3).
pub(super) fn task_id(text: &str) -> Option<TaskId> {
    let can_be_asked = text.len() <= ADDRESS && !matches!(text, "." | "..");
    can_be_asked.then(|| TaskId::new(text)).flatten()
}

/// An address, unless it is too long to be one.
pub(super) fn address(text: &str) -> Option<String> {
    (text.len() <= ADDRESS).then(|| text.to_owned())
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

fn is_flat(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(items) => depth > 0 && items.iter().all(|item| is_flat(item, depth - 1)),
        Value::Object(fields) => depth > 0 && fields.values().all(|field| is_flat(field, depth - 1)),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_usual_is_kept_as_it_is() {
        let error = json!({ "message": "no", "code": { "kind": [1, null] } });
        assert_eq!(raw(&error), error);
        assert_eq!((message("no"), word("queued")), ("no".to_owned(), "queued".to_owned()));
        assert_eq!(task_id("a/b é"), TaskId::new("a/b é"));
    }

    #[test]
    fn what_is_endless_or_bottomless_is_cut() {
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
}
