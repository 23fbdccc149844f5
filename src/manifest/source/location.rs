//! Location of a value in the file.
//!
//! A [`Location`] is symbolic (`jobs[3].duration`), so it costs next to nothing to carry.

use std::fmt;

/// One step from a value to a part of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// The value of a key.
    Key(String),
    /// An entry of a list, from 0.
    Index(usize),
}

/// The way from the top of the file to a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Pointer(pub(super) Vec<Step>);

/// A part of the value that a pointer names.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// The key itself.
    Key,
    /// The value.
    Value,
    /// An occurrence of this text inside the value, after so many earlier ones; or the value if it can't be found as it is.
    Fragment(String, usize),
    /// A second occurrence of the key, where a key is twice.
    Again,
}

/// The location of a diagnostic.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Location {
    /// A value of the manifest, or a part of it.
    Value(Pointer, Part),
    /// A line and a column of the manifest, each from 1, the column in characters.
    At(usize, usize),
    /// The manifest as a whole.
    File,
}

impl Pointer {
    /// The top of the file.
    pub fn top() -> Self {
        Self::default()
    }

    /// The value of a key of this one.
    #[must_use]
    pub fn key(&self, key: &str) -> Self {
        self.step(Step::Key(key.to_owned()))
    }

    /// An entry of this one.
    #[must_use]
    pub fn index(&self, index: usize) -> Self {
        self.step(Step::Index(index))
    }

    fn step(&self, step: Step) -> Self {
        let mut steps = Vec::with_capacity(self.0.len() + 1);
        steps.extend_from_slice(&self.0);
        steps.push(step);
        Self(steps)
    }

    /// The value there.
    pub fn value(self) -> Location {
        Location::Value(self, Part::Value)
    }

    /// The key there.
    pub fn named(self) -> Location {
        Location::Value(self, Part::Key)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) if nth == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}
