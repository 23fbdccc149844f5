#![doc = include_str!("money.md")]
