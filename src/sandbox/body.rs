//! The body of a submission, read as the interface document describes it (§2.1, §2.2).

use serde_json::{Map, Value};

use crate::domain::Spec;

/// The documented fields of a body; those that are not documented are passed over.
pub(super) fn spec(fields: &Map<String, Value>) -> Result<Spec, String> {
    let text = |name: &str| match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("{name} must be a string")),
    };
    let image = match fields.get("image") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(url)) => vec![url.clone()],
        Some(Value::Array(urls)) => urls.iter().map(|url| url.as_str().unwrap_or_default().to_owned()).collect(),
        Some(_) => return Err("image must be a string or an array".to_owned()),
    };
    let duration = match fields.get("duration") {
        None | Some(Value::Null) => None,
        Some(value) => Some(value.as_i64().ok_or("duration must be an integer")?),
    };
    Ok(Spec {
        model: text("model")?.unwrap_or_default(),
        prompt: text("prompt")?,
        duration,
        aspect_ratio: text("aspect_ratio")?,
        size: text("size")?,
        image,
        image_sent_as: None,
        local_images: Vec::new(),
        face: None,
        image_key: None,
        extra: Map::new(),
    })
}
