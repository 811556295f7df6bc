//! What a gateway says of itself at `/status`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::bench::BenchError;
use crate::bench::load::Answer;

/// How long an answer may be on its way.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);

/// What is open in a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Open {
    pub(crate) streams: u64,
    pub(crate) subscriptions: u64,
    pub(crate) feeds: u64,
    pub(crate) upstream_sessions: u64,
}

impl Open {
    /// Asks the gateway that listens there.
    pub(super) fn of(address: SocketAddr) -> Result<Self, BenchError> {
        let answer = ask(address).map_err(BenchError::io("ask for /status"))?;
        let mut body = Vec::new();
        Answer::default()
            .read(&answer, |part| body.extend_from_slice(part))
            .map_err(|error| BenchError::Role(format!("no /status: {error}")))?;
        Self::read(&body)
    }

    fn read(body: &[u8]) -> Result<Self, BenchError> {
        let status: Value = serde_json::from_slice(body)
            .map_err(|error| BenchError::Role(format!("/status cannot be read: {error}")))?;
        let open = |of: &str| {
            status[of]["open"]
                .as_u64()
                .ok_or_else(|| BenchError::Role(format!("/status does not say how many {of} are open")))
        };
        Ok(Self {
            streams: open("streams")?,
            subscriptions: open("subscriptions")?,
            feeds: open("feeds")?,
            upstream_sessions: open("upstreamSessions")?,
        })
    }
}

fn ask(address: SocketAddr) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWERED_WITHIN))?;
    let request = format!("GET /status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_read_and_what_is_missing_is_named() {
        let body = br#"{"streams":{"open":3,"opened":9},"subscriptions":{"open":2},"feeds":{"open":1},"upstreamSessions":{"open":1}}"#;
        let open = Open {
            streams: 3,
            subscriptions: 2,
            feeds: 1,
            upstream_sessions: 1,
        };
        assert_eq!(Open::read(body).unwrap(), open);
        let refused = Open::read(br#"{"streams":{"open":3}}"#).unwrap_err().to_string();
        assert!(refused.contains("how many subscriptions are open"), "{refused}");
        assert!(
            Open::read(b"<html>")
                .unwrap_err()
                .to_string()
                .contains("cannot be read")
        );
    }
}
