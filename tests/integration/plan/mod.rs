//! What is due, why, and what it costs; and what was bought before.

mod already_paid;
mod digest;
mod selections;
mod shown;
