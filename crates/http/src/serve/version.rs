//! Which version of HTTP a connection speaks: known by its first bytes.
//!
//! hyper-util's builder for both versions hands these bytes to hyper by themselves, which then asks for room for a whole head
//! behind them: that doubles the buffer for what is read, and every idle connection would keep it. It also makes room in each
//! connection of HTTP/1.1 for one of HTTP/2. Here hyper gets all that came at once, and each version has its own memory.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::server::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{BoxError, HttpService};
use crate::delivery::{BoundedExecutor, BoundedIo, BoundedService, ConnectionGuard};

/// What every connection of HTTP/2 begins with: <https://www.rfc-editor.org/rfc/rfc9113#section-3.4>.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection of hyper's, whatever its version, transport and service.
pub(super) trait Http {
    fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>>;

    fn graceful_shutdown(self: Pin<&mut Self>);
}

/// A connection whose version is not known.
pub(super) trait Fresh {
    /// Reads until it is.
    fn poll_version(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<Box<dyn Http + Send>>>>;
}

pub(super) struct FirstBytes<I, S> {
    /// What the connection is made of; taken once its version is known.
    parts: Option<(BoundedIo<I>, BoundedService<S>)>,
    http1: http1::Builder,
    http2: http2::Builder<BoundedExecutor>,
    bytes: [u8; PREFACE.len()],
    filled: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Http1,
    Http2,
}

/// The version, as far as these bytes and no more tell.
fn version_of(bytes: &[u8]) -> Option<Version> {
    if bytes.len() >= PREFACE.len() && bytes.starts_with(PREFACE) {
        Some(Version::Http2)
    } else if PREFACE.starts_with(bytes) {
        None
    } else {
        Some(Version::Http1)
    }
}

impl<I, S> FirstBytes<I, S> {
    pub(super) fn new(guard: &ConnectionGuard, io: I, service: S) -> Self {
        Self {
            parts: Some((guard.io(io), guard.service(service))),
            http1: ConnectionGuard::http1(),
            http2: guard.http2(),
            bytes: [0; PREFACE.len()],
            filled: 0,
        }
    }
}

impl<I, S> Fresh for FirstBytes<I, S>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService,
{
    fn poll_version(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Pin<Box<dyn Http + Send>>>> {
        let version = loop {
            let Some((io, _)) = &mut self.parts else {
                return Poll::Pending;
            };
            let mut rest = ReadBuf::new(&mut self.bytes[self.filled..]);
            ready!(Pin::new(io).poll_read(cx, &mut rest))?;
            let read = rest.filled().len();
            self.filled += read;
            match version_of(&self.bytes[..self.filled]) {
                Some(version) => break version,
                // It ended within the preface, or before: hyper knows what to say to that.
                None if read == 0 => break Version::Http1,
                None => {}
            }
        };
        let Some((mut io, service)) = self.parts.take() else {
            return Poll::Pending;
        };
        io.put_back(&self.bytes[..self.filled]);
        let io = TokioIo::new(io);
        Poll::Ready(Ok(match version {
            Version::Http1 => Box::pin(self.http1.serve_connection(io, service).with_upgrades()),
            Version::Http2 => Box::pin(self.http2.serve_connection(io, service)),
        }))
    }
}

/// Implements [`Http`] for a connection of hyper's: the two have the same methods, and no trait for them.
macro_rules! http {
    ($connection:ty) => {
        impl<I, S> Http for $connection
        where
            I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
            S: HttpService,
        {
            fn poll_end(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
                self.poll(cx).map_err(Into::into)
            }

            fn graceful_shutdown(self: Pin<&mut Self>) {
                Self::graceful_shutdown(self);
            }
        }
    };
}

http!(http1::UpgradeableConnection<TokioIo<BoundedIo<I>>, BoundedService<S>>);
http!(http2::Connection<TokioIo<BoundedIo<I>>, BoundedService<S>, BoundedExecutor>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_known_by_the_first_byte_that_differs_or_the_whole_preface() {
        assert_eq!(version_of(b""), None);
        assert_eq!(version_of(b"PRI * HTTP/2.0\r\n"), None);
        assert_eq!(version_of(PREFACE), Some(Version::Http2));
        assert_eq!(version_of(b"G"), Some(Version::Http1));
        assert_eq!(version_of(b"POST / HTTP/1.1\r\n"), Some(Version::Http1));
        assert_eq!(version_of(b"PRI * HTTP/1.1\r\n"), Some(Version::Http1));
    }
}
