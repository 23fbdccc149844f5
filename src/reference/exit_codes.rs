#![doc = include_str!("exit-codes.md")]
