//! The statements of a store, their values, and the lines of their answers.

use crate::domain::{Attempt, BatchKey, History, TaskId};
use crate::ledger::Controls;
use crate::ledger::row::{self, Unreadable};
use crate::ledger::rules::{Changes, Named};
use crate::ledger::value::Value;

/// A line of an answer. Columns are counted from 0.
pub(in crate::ledger) trait Line<E> {
    fn number(&self, column: usize) -> Result<i64, E>;

    /// A text, as it was written.
    fn text(&self, column: usize) -> Result<String, E>;

    /// JSON or the name of a state, without a copy.
    fn plain(&self, column: usize) -> Result<Option<&str>, E>;

    /// A number of things.
    fn count(&self, column: usize) -> Result<u32, E> {
        Ok(u32::try_from(self.number(column)?).unwrap_or(u32::MAX))
    }
}

/// A connection or a transaction. The values of a statement are `$1`, `$2`, and so on.
pub(in crate::ledger) trait Sql {
    /// The error of the medium.
    type Error: From<Unreadable>;

    /// The condition of a column whose text is in a JSON array, which is the first value of the statement.
    const IS_AMONG: &'static str;

    /// Reads the lines of an answer, one after the other.
    async fn each_line(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn Line<Self::Error>) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Executes a statement without an answer.
    async fn change(&self, sql: &str, values: &[Value<'_>]) -> Result<(), Self::Error>;

    /// The lines of an answer.
    async fn lines<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Line<Self::Error>) -> Result<T, Self::Error>,
    ) -> Result<Vec<T>, Self::Error> {
        let mut lines = Vec::new();
        self.each_line(sql, values, |line| {
            lines.push(read(line)?);
            Ok(())
        })
        .await?;
        Ok(lines)
    }

    /// The first line of an answer.
    async fn line<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl Fn(&dyn Line<Self::Error>) -> Result<T, Self::Error>,
    ) -> Result<Option<T>, Self::Error> {
        Ok(self.lines(sql, values, read).await?.into_iter().next())
    }

    /// The record of a batch, verified where the medium is.
    async fn history(&self, batch: &BatchKey) -> Result<History, Self::Error>;

    /// The limits, the freeze, and the time.
    async fn controls(&self) -> Result<Controls, Self::Error>;

    /// The attempts whose task has one of these names.
    async fn named(&self, names: &[&TaskId]) -> Result<Vec<Named>, Self::Error>;

    /// Verifies the sums that limits are checked against, where the medium may have lost some.
    async fn verify_sums(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Verifies the attempts of all batches, where the medium may have lost some.
    async fn verify_attempts(&self) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Writes rows and sums at once. A runner's own go with its commit, behind the locks of that.
    async fn save_now(&self, changes: &Changes<'_>) -> Result<(), Self::Error>;
}

/// An attempt, by the column of its ID; its record follows. Shares the account with the attempt before it.
pub(in crate::ledger) fn attempt<E: From<Unreadable>>(
    line: &dyn Line<E>,
    id: usize,
    before: Option<&Attempt>,
) -> Result<Attempt, E> {
    Ok(row::read(line.number(id)?, line.plain(id + 1)?.unwrap_or_default(), before)?)
}

/// A batch, by the column of its name; its value follows.
pub(in crate::ledger) fn key<E>(line: &dyn Line<E>, name: usize) -> Result<BatchKey, E> {
    Ok(BatchKey { name: line.text(name)?, batch: line.text(name + 1)? })
}
