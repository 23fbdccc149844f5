//! The attempt that a crashed run leaves.

use crate::domain::{Attempt, ServiceError};
use crate::ledger::{Event, IllegalEvent};

/// Puts an intent without a response in doubt. Its time of response stays unknown, so that only its runner's end settles it.
pub(in crate::ledger) fn recover(attempt: &mut Attempt) -> Result<(), IllegalEvent> {
    let message = "the run ended between sending and the answer".to_owned();
    let error = ServiceError { message, ..ServiceError::default() };
    attempt.state = Event::Doubted(error.clone()).after(attempt.state)?;
    attempt.error = Some(Box::new(error));
    Ok(())
}
