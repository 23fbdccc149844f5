//! The rules alone, without a store: [`admit`], with the values that both begin with, and [`events`] with task names and sums.

mod admit;
mod events;
