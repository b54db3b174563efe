//! What a worker answers, and what becomes of the connection that it came on.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use crate::body::OutBody;
use crate::traffic::InFlight;
use crate::upstream::{Connection, Upstream};

/// A response body of a worker. While it lives the invocation counts as in flight; when it
/// ends its connection goes back to the pool, and when it is dropped early the connection
/// is closed, which cancels the worker's stream.
pub(crate) struct Served {
    /// What was read of it before the head was passed on.
    first: Option<hyper::Result<Frame<Bytes>>>,
    inner: Incoming,
    connection: Option<Connection>,
    after: After,
    _in_flight: InFlight,
}

/// What becomes of a connection when its response has ended.
pub(crate) enum After {
    /// It goes back to the pool of this socket.
    Reuse(Upstream),
    /// It is closed, also when the request body was not sent to its end.
    Close,
}

impl Served {
    pub(crate) fn body(
        first: Option<hyper::Result<Frame<Bytes>>>,
        inner: Incoming,
        connection: Connection,
        after: After,
        in_flight: InFlight,
    ) -> OutBody {
        let connection = Some(connection);
        Served {
            first,
            inner,
            connection,
            after,
            _in_flight: in_flight,
        }
        .boxed_unsync()
    }

    fn finish(&mut self) {
        if let Some(connection) = self.connection.take() {
            match &self.after {
                After::Reuse(upstream) => upstream.give_back(connection),
                After::Close => connection.end(),
            }
        }
    }
}

impl Body for Served {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let polled = match self.first.take() {
            Some(first) => Poll::Ready(Some(first)),
            None => Pin::new(&mut self.inner).poll_frame(cx),
        };
        match &polled {
            Poll::Ready(None) => self.finish(),
            Poll::Ready(Some(Err(_))) => self.after = After::Close,
            Poll::Ready(Some(Ok(_))) | Poll::Pending => {}
        }
        polled.map(|frame| frame.map(|frame| frame.map_err(io::Error::other)))
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().and_then(|first| first.as_ref().ok());
        let read = first.and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
        match self.inner.size_hint().exact() {
            Some(rest) => SizeHint::with_exact(read + rest),
            None => SizeHint::default(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // A body of known length is often not polled once more after its last byte.
        if !self.is_end_stream() {
            self.after = After::Close;
        }
        self.finish();
    }
}
