//! shotlist turns a YAML manifest of video jobs into finished videos.

pub mod catalog;
pub mod domain;
pub mod engine;
pub mod ledger;
pub mod manifest;
pub mod plan;
pub mod report;
pub mod sandbox;
pub mod service;
