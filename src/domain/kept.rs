//! Storage of values that must never make an attempt unreadable.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

/// Reads a value, or none where it is invalid: without its path, a video is downloaded again, which costs nothing.
pub(super) fn if_valid<'de, D: Deserializer<'de>, T: DeserializeOwned>(input: D) -> Result<Option<T>, D::Error> {
    let value = Option::<serde_json::Value>::deserialize(input)?;
    Ok(value.and_then(|value| serde_json::from_value(value).ok()))
}

/// The account of a failure, as JSON in a text: a service may nest its own JSON deeper than a parser accepts.
pub(super) mod error {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::domain::ServiceError;

    type Error = Option<Box<ServiceError>>;

    pub(crate) fn serialize<S: Serializer>(error: &Error, output: S) -> Result<S::Ok, S::Error> {
        let text = error.as_ref().map(serde_json::to_string).transpose();
        text.map_err(serde::ser::Error::custom)?.serialize(output)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Error, D::Error> {
        let error = |text: String| {
            serde_json::from_str(&text).unwrap_or_else(|_| ServiceError {
                message: "the stored error can't be parsed".to_owned(),
                code: None,
                raw: text.into(),
            })
        };
        Ok(Option::<String>::deserialize(input)?.map(|text| Box::new(error(text))))
    }
}
