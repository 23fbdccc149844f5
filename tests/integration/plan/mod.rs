//! Due jobs with reason and cost, and earlier purchases.

mod already_paid;
mod digest;
mod selections;
mod shown;
