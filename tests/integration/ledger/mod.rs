//! What was bought, whatever breaks: the file, the disk, the process.

mod chaos;
mod crash;
mod damage;
mod faults;
mod file;
mod kills;
mod people;
mod random;
