//! From a file to jobs, with every error in it.

mod defaults;
mod diagnostics;
mod draft;
mod draft_columns;
mod expansion;
mod forgotten;
mod hostile;
mod images;
mod mistakes;
mod reads;
mod rules;
mod schema;
mod shapes;
mod sheets;
mod sources;
mod streams;
mod templates;
