//! Reads a manifest job by job, however its mapping and its list are written: in brackets, as JSON, for example.
//!
//! A hundred thousand entries as one tree of values take more memory, and with it time, than all else together. Here each
//! entry is a value only until it is decoded. Whatever has another form is left to the parser of the whole tree, which has
//! the better words for what is wrong.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Mapping, Value};

use super::decode::{Decoded, decode_job};
use crate::manifest::source::location::Pointer;

/// The manifest without its jobs, and the jobs. Nothing if the file has another form.
pub(crate) fn read(text: &str) -> Option<(Mapping, Vec<Decoded>)> {
    // Merge keys need the whole tree.
    if text.contains("<<") {
        return None;
    }
    serde_yaml::Deserializer::from_str(text).deserialize_map(Top).ok()
}

struct Top;

impl<'de> Visitor<'de> for Top {
    type Value = (Mapping, Vec<Decoded>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manifest")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut rest, mut jobs) = (Mapping::new(), Vec::new());
        while let Some(key) = map.next_key::<Value>()? {
            if key.as_str() == Some("jobs") {
                if !jobs.is_empty() {
                    return Err(A::Error::custom("jobs stand twice"));
                }
                jobs = map.next_value_seed(Jobs)?;
            } else if rest.insert(key, map.next_value()?).is_some() {
                return Err(A::Error::custom("a key stands twice"));
            }
        }
        if jobs.is_empty() {
            return Err(A::Error::custom("there are no jobs"));
        }
        Ok((rest, jobs))
    }
}

struct Jobs;

impl<'de> DeserializeSeed<'de> for Jobs {
    type Value = Vec<Decoded>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Jobs {
    type Value = Vec<Decoded>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of jobs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut jobs, at) = (Vec::new(), Pointer::top().key("jobs"));
        while let Some(value) = list.next_element::<Value>()? {
            let at = at.index(jobs.len());
            jobs.push(decode_job(value, &at));
        }
        Ok(jobs)
    }
}
