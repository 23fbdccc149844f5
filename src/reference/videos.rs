#![doc = include_str!("videos.md")]
