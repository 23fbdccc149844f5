//! Runs on a paused clock: hours pass in milliseconds, and every moment is exact.

mod fetching;
mod money;
mod outages;
mod polls;
mod rates;
mod slots;
mod slow_start;
