#![doc = include_str!("programs.md")]
