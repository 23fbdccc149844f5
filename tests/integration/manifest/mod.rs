//! From a file to jobs: what it becomes, and everything that can be wrong with it.

mod bounds;
mod diagnostics;
mod draft;
mod expansion;
mod mistakes;
mod schema;
mod streams;
