//! The reference: topics about more than one option. `shotlist help TOPIC` prints the Markdown of a topic, wrapped. Imports no other module.

mod topic;

pub(crate) use topic::{TOPICS, Topic};
