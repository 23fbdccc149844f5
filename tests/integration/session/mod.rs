//! Whole runs: what is sent and written, limits and consent, signals, and the same from a program.

mod abandoned;
mod adopt;
mod approval;
mod bill;
mod choices;
mod consent;
mod delivery;
mod doubts;
mod exec;
mod face_reviews;
mod files;
mod images;
mod labels;
mod library;
mod money;
mod moves;
mod release;
mod retakes;
mod run;
mod sheet;
mod signals;
mod yesterday;
