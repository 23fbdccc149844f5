//! The reference: what is in no help text because it is about more than one option.
//!
//! Each topic is one file of Markdown, and everything that shows it is made of that file: these pages, `shotlist help TOPIC`
//! ([`terminal`]) and the man pages ([`man`]). [`blocks`] reads the part of Markdown that the topics use, and refuses what it does not know,
//! so that no word is lost on the way. It imports no other module.

pub mod again;
mod blocks;
pub mod cron;
pub mod editors;
pub mod exit_codes;
pub mod machines;
mod man;
pub mod manifest;
pub mod money;
pub mod programs;
pub mod reports;
pub mod service;
mod terminal;
mod topic;
pub mod videos;
pub mod words;

pub use topic::{TOPICS, Topic};
