//! The connection of one reader, and what became of it.

use std::io::{ErrorKind, Read as _, Write as _};

use mio::net::TcpStream;

use super::Reader;
use crate::wait;

#[derive(Debug)]
pub(super) struct Connection {
    /// `None` once dropped; its place is used again.
    pub(super) stream: Option<TcpStream>,
    pub(super) reader: Reader,
    pub(super) state: State,
    /// When its newest stamp was received, in nanoseconds since 1970.
    pub(super) newest_at: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Connecting,
    Open,
    /// It reads nothing, as a browser whose tab is frozen.
    Stalled,
    /// The server ended it, in order or not.
    Ended(String),
    Dropped,
}

impl Connection {
    /// Sends the request once the connection stands; whether it does.
    pub(super) fn begin(&mut self, request: &str) -> std::io::Result<bool> {
        let Some(stream) = &mut self.stream else {
            return Ok(false);
        };
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        match stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(false),
            other => other.map(|_| ())?,
        }
        // A fresh connection's buffer takes a few hundred bytes as a whole.
        stream.write_all(request.as_bytes())?;
        Ok(true)
    }

    /// Reads until there is nothing more.
    pub(super) fn drain(&mut self, buffer: &mut [u8], mut delays: Option<&mut Vec<u64>>) {
        if self.state != State::Open {
            return;
        }
        while let Some(stream) = &mut self.stream {
            let ended = match stream.read(buffer) {
                Ok(0) => "the connection ended".to_owned(),
                Ok(taken) => {
                    let now = wait::unix_nanos();
                    let newest = self.reader.tally().newest;
                    let read = self.reader.read(&buffer[..taken], |stamp| {
                        if let Some(delays) = delays.as_deref_mut() {
                            delays.push(now.saturating_sub(stamp));
                        }
                    });
                    if self.reader.tally().newest > newest {
                        self.newest_at = now;
                    }
                    match read {
                        Ok(()) if self.reader.is_complete() => "the answer is complete".to_owned(),
                        // A short read has taken all there was; the next bytes raise another event.
                        Ok(()) if taken < buffer.len() => return,
                        Ok(()) => continue,
                        Err(error) => error.to_string(),
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error.to_string(),
            };
            self.state = State::Ended(ended);
            self.stream = None;
        }
    }
}
