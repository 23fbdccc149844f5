//! The plan: due jobs with reasons and prices, as a pure value that `--plan` prints and the run consumes.
//!
//! A plan is pure: the same jobs and history make the same plan, without a clock, network, or file. The run takes its work only from the plan, so a
//! dry run can't differ from it.

mod approval;
mod build;
mod decide;
mod downloads;
mod guards;
mod input;
mod notes;
mod retake;
mod view;

pub use approval::{Approved, Estimate, ServiceView, Totals};
pub use build::Plan;
pub use decide::{Action, changes};
pub use downloads::{Destination, Download, DownloadPlan};
pub use input::{AlreadyPaid, Before, IsHere, Limit, OtherDirectory, PlanInput, Planned, Previous, UntilKept};
pub(crate) use notes::PRICES_AGE;
pub use notes::{PlanNote, notes};
pub use retake::{IdGlobs, InvalidGlob, Retakes, Selection, SpentChoice};
pub(crate) use view::by_model;
pub use view::{ModelView, PlanView, WarningView};
