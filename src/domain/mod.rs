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
pub use job::{Cells, Columns, FaceReview, Field, Job, LocalImage, Purchase, Spec};
pub(crate) use job::{SHAPES, has_password, is_upright, ratio_meant_by, sides, why_no_web_address};
pub use money::{InvalidUsd, Usd};
pub(crate) use output::{Asked, MIN_DURATION_DIFFERENCE_S, folded};
pub use output::{Difference, Footage, InvalidPath, OutputPath, PriceList, VideoFile};
pub(crate) use request::has_web_url;
pub use request::{Fingerprint, Request, SendBy};
pub(crate) use review::if_valid;
pub use review::{Choice, JobChoice, Review, ReviewOfTask, Reviewed, Takes, last_reviews, wishes};
pub use terminal_states::TerminalStates;
pub(crate) use terminal_states::{SPEED_HEADER, retry_after};
pub use text::normalized;
pub(crate) use text::{causes, count, displayed, named, quoted, with_causes};
