//! Bodies on their way through the host: never buffered whole, never lengthened or
//! shortened, a broken transfer stays distinguishable from a clean end.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::mpsc;

/// A body the host sends, in either direction.
pub(crate) type OutBody = UnsyncBoxBody<Bytes, io::Error>;

/// No body.
pub(crate) fn empty() -> OutBody {
    Empty::new()
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// A body that is already here.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> OutBody {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
}

/// How much of an unwanted request body is read after the answer, and for how long.
const DISCARD_BYTES: u64 = 8 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// The request body as an upstream body, read by a task of its own.
///
/// A server closes the connection as soon as its service drops an unread body, and a caller
/// then loses the response that was on its way. So when the upstream has lost interest, the
/// task reads on for a while and discards. A body longer than `limit` breaks off and raises
/// `exceeded`.
pub(crate) fn pumped(mut incoming: Incoming, limit: u64, exceeded: Arc<AtomicBool>) -> OutBody {
    if incoming.is_end_stream() {
        return empty();
    }
    let length = incoming.size_hint().exact();
    let (feed, frames) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut total = 0u64;
        while let Some(frame) = incoming.frame().await {
            let frame = frame.map_err(io::Error::other);
            let broken = frame.is_err();
            total += frame
                .as_ref()
                .ok()
                .and_then(Frame::data_ref)
                .map_or(0, |data| data.len() as u64);
            let frame = match frame {
                Ok(_) if total > limit => {
                    exceeded.store(true, Ordering::SeqCst);
                    Err(io::ErrorKind::FileTooLarge.into())
                }
                frame => frame,
            };
            let ended = broken || frame.is_err();
            if feed.send(frame).await.is_err() {
                let _ = tokio::time::timeout(DISCARD_TIME, discard(&mut incoming)).await;
                return;
            }
            if ended {
                return;
            }
        }
    });
    Pumped {
        frames,
        remaining: length,
    }
    .boxed_unsync()
}

async fn discard(incoming: &mut Incoming) {
    let mut rest = DISCARD_BYTES;
    while rest > 0 {
        match incoming.frame().await {
            Some(Ok(frame)) => {
                rest = rest.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64))
            }
            Some(Err(_)) | None => return,
        }
    }
}

struct Pumped {
    frames: mpsc::Receiver<io::Result<Frame<Bytes>>>,
    /// Bytes still due when the length is known.
    remaining: Option<u64>,
}

impl Body for Pumped {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = self.frames.poll_recv(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            let length = frame.data_ref().map_or(0, |data| data.len() as u64);
            self.remaining = self
                .remaining
                .map(|remaining| remaining.saturating_sub(length));
        }
        polled
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
