//! A connection whose other side may have answered and gone before it was told everything.
//!
//! The runtime closes a connection when a handler answers without reading the request body.
//! A write that comes too late then fails, although the answer waits to be read. So a failed
//! write is not an error here: what was answered is read first, and when there is nothing,
//! the end of the connection says so.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Wraps a stream; see the module.
pub(crate) struct Patient<S> {
    inner: S,
    deaf: bool,
}

impl<S> Patient<S> {
    pub(crate) fn new(inner: S) -> Patient<S> {
        Patient { inner, deaf: false }
    }
}

impl<S: Unpin> Patient<S> {
    fn told<T>(&mut self, polled: Poll<io::Result<T>>, instead: T) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(Err(error))
                if matches!(
                    error.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                self.deaf = true;
                Poll::Ready(Ok(instead))
            }
            polled => polled,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.deaf {
            return Poll::Ready(Ok(bytes.len()));
        }
        let polled = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.told(polled, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(length));
        }
        let polled = Pin::new(&mut self.inner).poll_write_vectored(cx, parts);
        self.told(polled, length)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.told(polled, ())
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.told(polled, ())
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_read_although_the_rest_of_the_request_cannot_be_written() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let mut near = Patient::new(near);
        near.write_all(b"head").await.unwrap();
        far.write_all(b"answer").await.unwrap();
        drop(far);
        near.write_all(b"too late").await.unwrap();
        near.write_all(b"and later").await.unwrap();
        let mut answer = [0; 6];
        near.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"answer");
    }
}
