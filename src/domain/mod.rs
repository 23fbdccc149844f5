//! Types of the domain, without input, output, or a clock.
//!
//! A [`Job`] is one paid generation in a manifest. An [`Attempt`] is one submission of it in the ledger, and both have a [`Purchase`]. A
//! [`History`] is every attempt of one batch. The module imports no other module.

mod attempt;
mod codes;
mod history;
mod ids;
mod job;
mod money;
mod output;
mod request;
mod review;
mod terminal_states;
pub(crate) mod text;

pub use attempt::{
    Archived, Attempt, AttemptId, AttemptState, Billed, Charge, Charging, Declaration, Declared, Executed, Freeze,
    Particulars, ServiceError, counted_cost,
};
pub use codes::{Explained, NoticeCode, RefusalCode, Rule};
pub(crate) use codes::{RUN_AGAIN, SHOW_PLAN, WRITABLE, explained};
pub use history::{History, Move, MovedOnto, OpenElsewhere, UnfinishedRetake, new_ids};
pub use ids::{Account, BatchKey, Digest, InvalidJobId, JobId, Label, Labels, TaskId, TaskNames};
pub(crate) use ids::{hex, random};
pub use job::{Cells, Columns, FaceReview, Job, Purchase};
pub use job::{Field, LocalImage, Spec};
pub(crate) use job::{SHAPES, has_password, is_upright, ratio_meant_by, sides, why_no_web_address};
pub use money::{InvalidUsd, Usd};
pub(crate) use output::folded;
pub(crate) use output::{Asked, MIN_DURATION_DIFFERENCE_S};
pub use output::{Difference, Footage, PriceList, VideoFile};
pub use output::{InvalidPath, OutputPath};
pub use request::SendBy;
pub(crate) use request::has_web_url;
pub use request::{Fingerprint, Request};
pub use review::{Choice, JobChoice, Review, ReviewOfTask, Reviewed, Takes, last_reviews, wishes};
pub(crate) use terminal_states::SPEED_HEADER;
pub use terminal_states::TerminalStates;
pub(crate) use terminal_states::retry_after;
pub use text::normalized;
pub(crate) use text::{causes, count, displayed, named, quoted, with_causes};
