//! Plain types of the field, with no input or output and no clock of their own.
//!
//! A [`Job`] is one paid generation that a manifest asks for. An [`Attempt`] is one submission of it that the ledger
//! knows. A [`History`] is every attempt of one batch. It imports no other module.

mod account;
mod attempt;
mod causes;
mod cells;
mod codes;
mod digest;
mod final_words;
mod footage;
mod freeze;
mod hex;
mod history;
mod ids;
mod inputs;
mod job;
mod kept;
mod label;
mod money;
mod moves;
mod normalized;
mod output;
mod particulars;
mod picture;
pub(crate) mod printable;
mod request;
mod retry_after;
mod review;
mod runner_seen;
mod send_by;
mod spec;
pub(crate) mod spreadsheet;
mod video;

pub use account::Account;
pub use attempt::{Attempt, AttemptId, AttemptState, Charge, Charging, ServiceError, Sighting};
pub(crate) use causes::{causes, with_causes};
pub use cells::{Cells, Columns};
pub use codes::{NoticeCode, RefusalCode, Rule};
pub use digest::Digest;
pub use final_words::FinalWords;
pub(crate) use footage::{Asked, SHORTEST};
pub use footage::{Difference, Footage, PriceList};
pub use freeze::Freeze;
pub(crate) use hex::hex;
pub use history::{History, UnfinishedRetake};
pub use ids::{BatchKey, InvalidJobId, JobId, TaskId, TaskNames};
pub use inputs::Inputs;
pub use job::{FaceReview, Job};
pub use label::{Label, Labels};
pub use money::{InvalidUsd, Usd};
pub use moves::{Move, MovedOnto, new_ids};
pub use normalized::normalized;
pub use output::{InvalidPath, OutputPath};
pub use particulars::{Billed, Declaration, Declared, Executed, Particulars, Released};
pub use picture::Picture;
pub(crate) use picture::{has_password, why_no_web_address};
pub(crate) use request::has_web_url;
pub use request::{Fingerprint, Request};
pub(crate) use retry_after::retry_after;
pub use review::{Choice, JobChoice, Review, ReviewOfTask, Reviewed, Takes, last_reviews};
pub use runner_seen::RunnerSeen;
pub use send_by::SendBy;
pub use spec::{Field, Spec};
pub(crate) use spec::{is_upright, sides};
pub use video::VideoFile;
