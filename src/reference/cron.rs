#![doc = include_str!("cron.md")]
