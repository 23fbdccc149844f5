//! Whole runs: submissions, files, limits, confirmations, and signals, also through the library.

mod approval;
mod archive;
mod bill;
mod choices;
mod confirmation;
mod cut;
mod delivery;
mod doubts;
mod exec;
mod face_reviews;
mod files;
mod images;
mod import;
mod labels;
mod library;
mod money;
mod moves;
mod retakes;
mod run;
mod sheet;
mod signals;
mod waits;
mod yesterday;
