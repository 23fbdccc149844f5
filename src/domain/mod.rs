//! Types of the domain, without input, output, or a clock.
//!
//! A [`Job`] is one paid generation in a manifest. An [`Attempt`] is one submission of it in the ledger, and both have a [`Purchase`]. A
//! [`History`] is every attempt of one batch. The module imports no other module.

mod attempt;
mod cells;
mod codes;
mod digest;
mod footage;
mod history;
mod ids;
mod job;
mod local_image;
mod money;
mod moves;
mod normalized;
mod output;
mod particulars;
mod request;
mod review;
mod send_by;
mod spec;
pub(crate) mod spreadsheet;
mod terminal_states;
pub(crate) mod text;

pub use attempt::{Attempt, AttemptId, AttemptState, Charge, Charging, ServiceError, counted_cost};
pub use cells::{Cells, Columns};
pub use codes::{NoticeCode, RefusalCode, Rule};
pub use digest::Digest;
pub(crate) use digest::hex;
pub(crate) use digest::random;
pub(crate) use footage::{Asked, MIN_DURATION_DIFFERENCE_S};
pub use footage::{Difference, Footage, PriceList, VideoFile};
pub use history::{History, UnfinishedRetake};
pub use ids::{Account, BatchKey, InvalidJobId, JobId, Label, Labels, TaskId, TaskNames};
pub use job::{FaceReview, Job, Purchase};
pub use local_image::LocalImage;
pub(crate) use local_image::{has_password, why_no_web_address};
pub use money::{InvalidUsd, Usd};
pub use moves::{Move, MovedOnto, new_ids};
pub use normalized::normalized;
pub(crate) use output::folded;
pub use output::{InvalidPath, OutputPath};
pub use particulars::Freeze;
pub use particulars::{Archived, Billed, Declaration, Declared, Executed, Particulars};
pub(crate) use request::has_web_url;
pub use request::{Fingerprint, Request};
pub use review::{Choice, JobChoice, Review, ReviewOfTask, Reviewed, Takes, last_reviews};
pub use send_by::SendBy;
pub use spec::{Field, Spec};
pub(crate) use spec::{is_upright, sides};
pub use terminal_states::TerminalStates;
pub(crate) use terminal_states::retry_after;
pub(crate) use text::{causes, named, with_causes};
