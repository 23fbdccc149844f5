//! A submission that leaves in time, or not at all.

use crate::domain::SendBy;

tokio::task_local! {
    /// Of the submission that this task is about to send.
    static DEADLINE: SendBy;
}

/// Sends, if the connection is before it is too late.
pub(super) async fn before<T>(send_by: Option<SendBy>, send: impl Future<Output = T>) -> T {
    match send_by {
        Some(send_by) => DEADLINE.scope(send_by, send).await,
        None => send.await,
    }
}

/// The connection stands too late for what was to be sent on it.
#[derive(Debug, thiserror::Error)]
#[error("connected too late to send; another runner may have taken over")]
struct TooLate;

/// Lets a connection through that is in time. Between this and the first byte nothing is waited for.
pub(super) async fn in_time<C>(connection: C) -> Result<C, Box<dyn std::error::Error + Send + Sync>> {
    if DEADLINE.try_with(|send_by| send_by.is_over()).unwrap_or(false) {
        Err(Box::new(TooLate))
    } else {
        Ok(connection)
    }
}
