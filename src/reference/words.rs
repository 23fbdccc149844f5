#![doc = include_str!("words.md")]
