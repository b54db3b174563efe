//! Requests that cannot be read. The HTTP library refuses them before any service sees them, with
//! a status of its own and without a body; every answer of the host carries the envelope (host
//! API §5.1). So its refusal is held back, and the host's own is written in its place.

use crate::error::ApiError;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

/// What is read of a client that is still sending after it was refused: one that is cut off
/// before it has read the answer may never see it.
const HEARD_OUT_BYTES: u64 = 4 << 20;
const HEARD_OUT: Duration = Duration::from_secs(2);
/// No refusal of the library is longer.
const LONGEST_REFUSAL: usize = 256;

/// The request that has the library write the answer to one it could not read.
const STAND_IN: &[u8] = b"GET / HTTP/1.1\r\nhost: unread\r\nconnection: close\r\n\r\n";

/// A stream that keeps the last bytes back while they look like the library's refusal. It is the
/// last thing that the library writes, and it reads nothing after it; so bytes that only look like
/// one go out with the next read, the next write or the end. Cheap to clone: one is the library's,
/// one sees to the end.
pub struct Wire<S>(Arc<Mutex<Kept<S>>>);

struct Kept<S> {
    stream: S,
    held: Vec<u8>,
}

impl<S> Clone for Wire<S> {
    fn clone(&self) -> Wire<S> {
        Wire(self.0.clone())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Wire<S> {
    /// Around a stream on which nothing was written yet.
    pub fn new(stream: S) -> Wire<S> {
        let held = Vec::new();
        Wire(Arc::new(Mutex::new(Kept { stream, held })))
    }

    /// Ends the stream, once the library has let go of its clone: with `answer` instead of what
    /// was held back where a request could not be read, else with what was held back, which was
    /// no refusal.
    pub async fn end(self, answer: Option<Response>) -> io::Result<()> {
        let Some(kept) = Arc::into_inner(self.0) else {
            return Ok(());
        };
        let Kept { mut stream, held } = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        let Some(answer) = answer else {
            stream.write_all(&held).await?;
            return stream.shutdown().await;
        };
        let answer = Mutex::new(Some(answer));
        let service = service_fn(|_: Request<Incoming>| {
            let answer = answer.lock().unwrap_or_else(PoisonError::into_inner).take();
            future::ready(Ok::<_, Infallible>(answer.unwrap_or_default()))
        });
        let io = TokioIo::new(tokio::io::join(STAND_IN, &mut stream));
        http1::Builder::new()
            .half_close(true)
            .serve_connection(io, service)
            .await
            .map_err(io::Error::other)?;
        let (mut rest, mut nowhere) = (stream.take(HEARD_OUT_BYTES), tokio::io::sink());
        let heard = tokio::io::copy(&mut rest, &mut nowhere);
        let _ = tokio::time::timeout(HEARD_OUT, heard).await;
        Ok(())
    }

    fn kept(&self) -> MutexGuard<'_, Kept<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncWrite + Unpin> Kept<S> {
    fn poll_release(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.held.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.held))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.drain(..written);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut kept = self.kept();
        ready!(kept.poll_release(cx))?;
        Pin::new(&mut kept.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut kept = self.kept();
        ready!(kept.poll_release(cx))?;
        match refusal_at(bytes) {
            Some(0) => {
                kept.held = bytes.to_vec();
                // Whoever goes on reading releases them at once.
                cx.waker().wake_by_ref();
                Poll::Ready(Ok(bytes.len()))
            }
            Some(start) => Pin::new(&mut kept.stream).poll_write(cx, &bytes[..start]),
            None => Pin::new(&mut kept.stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.kept().stream).poll_flush(cx)
    }

    /// The end is written by [`Wire::end`], when it is known how it ended.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// Where the refusal begins that bytes end with: a head of one of three statuses with the fields
/// that the library gives it and no other.
fn refusal_at(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().saturating_sub(LONGEST_REFUSAL);
    let tail = &bytes[from..];
    if !tail.ends_with(b"\r\n\r\n") {
        return None;
    }
    let at = tail.windows(7).rposition(|part| part == b"HTTP/1.")?;
    let mut lines = std::str::from_utf8(&tail[at..]).ok()?.trim_end().lines();
    let status = lines.next()?.get("HTTP/1.1 ".len()..)?;
    let refused = ["400 ", "414 ", "431 "]
        .iter()
        .any(|code| status.starts_with(code));
    let own = |line: &str| {
        line == "connection: close" || line == "content-length: 0" || line.starts_with("date: ")
    };
    (refused && lines.all(own)).then_some(from + at)
}

/// Why a request could not be read, in the words of the host; `None` when the connection ended
/// for another reason.
pub fn reason(error: &hyper::Error, max_head_bytes: usize, max_fields: usize) -> Option<ApiError> {
    if !error.is_parse() {
        return None;
    }
    Some(ApiError::invalid(if error.is_parse_too_large() {
        format!(
            "the head of the request is larger than {max_head_bytes} bytes, or has more than \
             {max_fields} fields"
        )
    } else {
        "this is no request of HTTP/1.1 that can be read".to_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::refusal_at;

    const REFUSAL: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\ndate: Mon, 30 Nov 2026 05:00:00 GMT\r\n\r\n";

    #[test]
    fn only_what_the_library_itself_writes_is_a_refusal() {
        assert_eq!(refusal_at(REFUSAL.as_bytes()), Some(0));
        let before = "HTTP/1.1 400 Bad Request\r\ncontent-length: 2\r\n\r\n{}";
        let both = format!("{before}{REFUSAL}");
        assert_eq!(refusal_at(both.as_bytes()), Some(before.len()));
        let long = format!("{}{REFUSAL}", "\u{e9}".repeat(300));
        assert_eq!(refusal_at(long.as_bytes()), Some(600));
        for other in [
            before,
            "",
            "\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nx: y\r\n\r\n",
            &REFUSAL[..REFUSAL.len() - 2],
        ] {
            assert_eq!(refusal_at(other.as_bytes()), None, "{other}");
        }
    }
}
