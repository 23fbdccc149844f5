#![doc = include_str!("manifest.md")]
