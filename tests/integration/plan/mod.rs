//! What is due, why, and what it costs; and what was bought before.

mod digest;
mod repurchases;
mod selections;
mod shown;
