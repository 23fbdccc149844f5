#![doc = include_str!("editors.md")]
