//! The plan: due jobs with reasons and prices, as a pure value that `--plan` prints and the run consumes.
//!
//! The same jobs and history make the same plan: no clock, network, or file is read. The run takes its work from this
//! value alone, so a dry run can't differ from the run.

mod already_paid;
mod approval;
mod build;
mod coverage;
mod decide;
mod downloads;
mod estimate;
mod guards;
mod input;
mod notes;
mod planned;
mod retake;
mod sample;
mod select;
mod view;

pub use already_paid::{AlreadyPaid, Before};
pub use approval::Approved;
pub use build::Plan;
pub use decide::{Action, changes};
pub use downloads::{Destination, Download, DownloadPlan};
pub use estimate::{Estimate, ServiceView, Totals};
pub use input::{Elsewhere, OtherDirectory};
pub use input::{IsHere, PlanInput};
pub(crate) use notes::PRICES_AGE;
pub use notes::{PlanNote, notes};
pub use planned::{Limit, Planned, Previous, UntilKept};
pub use retake::{Retakes, SpentChoice};
pub use select::{IdGlobs, InvalidGlob, Selection};
pub(crate) use view::by_model;
pub use view::{ModelView, PlanView, WarningView};
