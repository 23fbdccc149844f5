//! Habits, words, and exit codes of the command line, and its documents.

mod cron;
mod doctor;
mod documents;
mod endings;
mod habits;
mod limits;
mod notices;
mod output;
mod reference;
mod refusals;
mod unattended;
