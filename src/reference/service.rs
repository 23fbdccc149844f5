#![doc = include_str!("service.md")]
