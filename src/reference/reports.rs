#![doc = include_str!("reports.md")]
