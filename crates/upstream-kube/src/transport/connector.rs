//! TCP connections that notice a dead peer, and a deadline for connecting as a whole.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use tower::Service;

use super::BoxError;

/// How long a connection is idle before the first probe, and between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// How many probes may stay unanswered.
const KEEPALIVE_PROBES: u32 = 3;
/// How long sent data may stay unacknowledged: as long as the probes take.
const USER_TIMEOUT: Duration = Duration::from_secs(45);

/// TCP with keepalive and a user timeout.
pub(super) fn tcp(connect_timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    connector.set_keepalive(Some(KEEPALIVE));
    connector.set_keepalive_interval(Some(KEEPALIVE));
    connector.set_keepalive_retries(Some(KEEPALIVE_PROBES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    connector.set_tcp_user_timeout(Some(USER_TIMEOUT));
    connector
}

/// Connecting, the TLS handshake included, takes no longer than `timeout`.
#[derive(Clone, Debug)]
pub(super) struct Bounded<C> {
    inner: C,
    timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
#[error("no connection to the api server within {0:?}")]
struct ConnectTimeout(Duration);

impl<C> Bounded<C> {
    pub(super) const fn new(inner: C, timeout: Duration) -> Self {
        Self { inner, timeout }
    }
}

impl<C> Service<Uri> for Bounded<C>
where
    C: Service<Uri>,
    C::Future: Send + 'static,
    C::Response: 'static,
    C::Error: Into<BoxError> + 'static,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.inner.call(uri);
        let timeout = self.timeout;
        Box::pin(async move {
            match tokio::time::timeout(timeout, connecting).await {
                Ok(connected) => connected.map_err(Into::into),
                Err(_elapsed) => Err(ConnectTimeout(timeout).into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn connections_notice_a_dead_peer() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap())
            .parse()
            .unwrap();
        let mut connector = tcp(Duration::from_secs(5));
        std::future::poll_fn(|cx| Service::poll_ready(&mut connector, cx))
            .await
            .unwrap();
        let stream = Service::call(&mut connector, url).await.unwrap();
        let socket = socket2::SockRef::from(stream.inner());
        assert!(socket.keepalive().unwrap() && socket.tcp_nodelay().unwrap());
        assert_eq!(socket.tcp_keepalive_time().unwrap(), KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_interval().unwrap(), KEEPALIVE);
        assert_eq!(socket.tcp_keepalive_retries().unwrap(), KEEPALIVE_PROBES);
        #[cfg(target_os = "linux")]
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(USER_TIMEOUT));
    }
}
