//! The contact sheet: one file that the user opens in a browser, from the disk and without a network.
//!
//! Everything in it that comes from outside, a manifest or a service, is escaped by the templates, and the page's own
//! policy lets nothing run but the script that it carries: should an escape ever fail, it still would not run. Videos come
//! from beside the page or from the addresses that the service gave, and from nowhere else.
//!
//! [`frame`] surrounds the cards of every page. [`card`] is one job, [`standing`] its text in place of a missing video, and [`problems`] the
//! lines above all cards. [`proposal`] is the page of a plan. [`charts`] and [`timeline`] turn sums and times into the geometry of the
//! drawings, which the template writes as SVG. Templates are compiled with the program, and cards are written one by one: ten thousand of them
//! need no more memory than one.

mod card;
mod charts;
mod frame;
mod page;
mod policy;
mod problems;
mod proposal;
mod standing;
mod text;
mod timeline;

pub(super) use page::write;
pub(crate) use proposal::{Proposal, ProposalCard, write as write_proposal};
