//! The reference: what is in no help text because it is about more than one option.
//!
//! Each topic is one file of Markdown, and everything that shows it is made of that file: `shotlist help TOPIC` ([`terminal`]) and the man pages ([`man`]). [`blocks`] reads the part of Markdown that the topics use, and refuses what it does not know,
//! so that no word is lost on the way. It imports no other module.

mod blocks;
mod man;
mod terminal;
mod topic;

pub use topic::{TOPICS, Topic};
