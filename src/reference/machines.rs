#![doc = include_str!("machines.md")]
