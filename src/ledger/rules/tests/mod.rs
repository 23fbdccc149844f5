//! The rules without a store: [`admit`], with the values of all these tests, and [`events`], with task names and sums.

mod admit;
mod events;
