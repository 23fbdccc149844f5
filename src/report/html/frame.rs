//! The frame of every page: a head, the filters, and a foot with the script.

use std::collections::BTreeMap;

use askama::Template;

use super::policy::Policy;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// The head of a page, with its policy and style.
#[derive(Template)]
#[template(path = "head.html")]
pub(super) struct Head {
    policy: Policy,
    version: &'static str,
    what: &'static str,
    style: &'static str,
    pub name: String,
    pub batch: String,
}

impl Head {
    /// Of a page of this kind, about a batch.
    pub(super) fn new(what: &'static str, policy: Policy, name: String, batch: String) -> Self {
        Self { policy, version: env!("CARGO_PKG_VERSION"), what, style: STYLE, name, batch }
    }

    /// The policy of a page that allows nothing else yet.
    pub(super) fn policy() -> Policy {
        Policy::new(STYLE, SCRIPT)
    }
}

/// The filters of the cards.
#[derive(Template)]
#[template(path = "tools.html")]
pub(super) struct Tools<'p> {
    pub states: Vec<Chip<'p>>,
    pub models: Vec<&'p str>,
    pub tags: Vec<&'p str>,
    /// The command that takes saved choices, if it is known.
    pub retake: Option<String>,
}

/// A state that some cards are in.
pub(super) struct Chip<'p> {
    pub name: &'p str,
    pub label: &'p str,
    /// The state that gives it its color.
    pub class: &'p str,
    pub count: usize,
}

/// The part below the cards.
#[derive(Template)]
#[template(path = "foot.html")]
pub(super) struct Foot<'p> {
    script: &'static str,
    /// Images that the page holds, by their SHA-256.
    local_images: Option<&'p BTreeMap<String, String>>,
}

impl<'p> Foot<'p> {
    /// Of a page that holds these images.
    pub(super) fn new(local_images: &'p BTreeMap<String, String>) -> Self {
        Self { script: SCRIPT, local_images: (!local_images.is_empty()).then_some(local_images) }
    }
}
