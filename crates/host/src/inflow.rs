//! The body of a request as it comes in.

use crate::error::ApiError;
use axum::body::Body;
use bytes::Bytes;
use http_body_util::BodyExt;
use notation_edge::MAX_ENTRY_BYTES;
use notation_edge_api::ErrorCode;
use std::time::Duration;
use tokio::time::Instant;

/// A body that must keep moving and come to its end.
pub struct Inflow {
    body: Body,
    patience: Duration,
    deadline: Instant,
    /// It was waited for in vain, or broke off: nothing more of it comes.
    over: bool,
    /// What must still be true when it has come to its end.
    at_end: Option<Box<dyn Fn() -> Result<(), ApiError> + Send + Sync>>,
}

impl Inflow {
    /// A body whose every part must arrive within `patience`, and the last one within `whole`.
    pub fn new(body: Body, patience: Duration, whole: Duration) -> Inflow {
        Inflow {
            body,
            patience,
            deadline: Instant::now() + whole,
            over: false,
            at_end: None,
        }
    }

    /// Asks once more at the end whether the request may go on.
    pub fn ends_if(&mut self, may: impl Fn() -> Result<(), ApiError> + Send + Sync + 'static) {
        self.at_end = Some(Box::new(may));
    }

    /// The next bytes; `None` at the end. A body that broke off once, or did not arrive, is not
    /// waited for again.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        let broken = || ApiError::invalid("the body ended early");
        loop {
            if self.over {
                return Err(broken());
            }
            let until = self.deadline.min(Instant::now() + self.patience);
            let frame = tokio::time::timeout_at(until, self.body.frame()).await;
            self.over = !matches!(frame, Ok(None | Some(Ok(_))));
            let frame = frame.map_err(|_| {
                ApiError::new(ErrorCode::DeadlineExceeded, "the body does not arrive")
            })?;
            match frame {
                None => {
                    return match &self.at_end {
                        Some(may) => may().map(|()| None),
                        None => Ok(None),
                    };
                }
                Some(Err(_)) => return Err(broken()),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// All bytes up to a ceiling; a longer body is read to its end and refused.
    pub async fn read(&mut self, ceiling: usize) -> Result<Vec<u8>, ApiError> {
        let mut bytes = Vec::new();
        while let Some(data) = self.next().await? {
            if bytes.len() + data.len() > ceiling {
                self.drain().await;
                return Err(ApiError::invalid(format!(
                    "the body is larger than {ceiling} bytes"
                )));
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    }

    /// Takes what is left off the wire: unread bytes would turn into a reset connection
    /// (host API §1.1). Nobody may send more than the largest blob.
    pub async fn drain(&mut self) {
        let mut left = MAX_ENTRY_BYTES + 1;
        while let Ok(Some(data)) = self.next().await {
            left = left.saturating_sub(data.len() as u64);
            if left == 0 {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    #[tokio::test]
    async fn a_body_that_does_not_arrive_is_waited_for_once() {
        let asked = Arc::new(AtomicUsize::new(0));
        let seen = asked.clone();
        let silent = futures::stream::poll_fn(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            Poll::<Option<Result<Bytes, std::io::Error>>>::Pending
        });
        let body = Body::from_stream(silent);
        let mut body = Inflow::new(body, Duration::from_millis(20), Duration::from_secs(600));
        let error = body.read(100).await.expect_err("nothing comes");
        assert_eq!(error.code, ErrorCode::DeadlineExceeded);
        let before = asked.load(Ordering::SeqCst);
        assert!(before > 0);
        body.drain().await;
        body.drain().await;
        assert_eq!(asked.load(Ordering::SeqCst), before, "asked once more");
    }
}
