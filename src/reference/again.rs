#![doc = include_str!("again.md")]
