//! Habits, words and exit codes of the command line, and documents that say what it does.

mod cron;
mod doctor;
mod documents;
mod endings;
mod features;
mod habits;
mod limits;
mod notices;
mod output;
mod reference;
mod refusals;
mod unattended;
