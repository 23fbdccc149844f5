//! The rules alone, without a store: [`admit`], and [`events`] with task names and sums. [`values`] are what both begin with.

mod admit;
mod events;
mod values;
