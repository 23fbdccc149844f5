//! Filling in the rows of a table on all processors.
//!
//! [`in_order`](mod@in_order) does the same to many things at once, and gives what comes of them in their order. It knows nothing of manifests.

mod in_order;

pub(super) use in_order::in_order;
