//! From a file to jobs: what it becomes, and everything that can be wrong with it.

mod defaults;
mod diagnostics;
mod draft;
mod draft_columns;
mod expansion;
mod hostile;
mod images;
mod mistakes;
mod reads;
mod rules;
mod schema;
mod shapes;
mod sheets;
mod streams;
