//! A reader behind a slow link: so many bytes a second, and hardly a buffer between the server and it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::{BenchError, Keeping, Reader, Source};
use crate::wait;

/// What a link of a home or an office carries in one segment. The loopback interface's own 64 KiB would have the
/// server's kernel buffer megabytes for a reader of a few KiB a second.
const SEGMENT: u32 = 1460;
/// What waits on the reader's side; the kernel doubles it.
const RECEIVE_BUFFER: usize = 16 * 1024;
/// What connecting says that goes on meanwhile: `EINPROGRESS`.
const IN_PROGRESS: i32 = rustix::io::Errno::INPROGRESS.raw_os_error();
/// How often the link carries something.
const SLICE: Duration = Duration::from_millis(50);

/// A socket with hardly a buffer, not connected yet.
fn socket(address: SocketAddr) -> std::io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    // Both only count before the connection stands.
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_tcp_mss(SEGMENT)?;
    Ok(socket)
}

/// A connection on its way, with hardly a buffer between the server and its reader.
pub(super) fn connecting(address: SocketAddr) -> std::io::Result<mio::net::TcpStream> {
    let socket = socket(address)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Err(error) if error.raw_os_error() != Some(IN_PROGRESS) => Err(error),
        Ok(()) | Err(_) => Ok(mio::net::TcpStream::from_std(socket.into())),
    }
}

/// What was seen at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Seconds since the connection was opened.
    pub(crate) at: f64,
    /// Seconds since the newest object that was received was written; `None` before the first.
    pub(crate) age: Option<f64>,
    pub(crate) synced: bool,
}

/// The link's connection and what was received over it.
#[derive(Debug)]
pub(crate) struct SlowReader {
    stream: TcpStream,
    reader: Reader,
    bytes_a_second: f64,
}

impl SlowReader {
    /// Connects and asks.
    pub(crate) fn open(source: &Source, bytes_a_second: f64) -> Result<Self, BenchError> {
        let io = BenchError::io("open a slow link");
        let open = || -> std::io::Result<TcpStream> {
            let socket = socket(source.address)?;
            socket.connect(&source.address.into())?;
            let mut stream = TcpStream::from(socket);
            stream.write_all(source.request().as_bytes())?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        };
        Ok(Self {
            stream: open().map_err(io)?,
            reader: Reader::new(source.numbering, Keeping::Nothing),
            bytes_a_second,
        })
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Reads for so long, and tells what was seen, several times a second.
    ///
    /// # Errors
    ///
    /// When the connection ends or cannot be read.
    pub(crate) fn run(&mut self, time: Duration) -> Result<Vec<Sample>, BenchError> {
        let clock = wait::stopwatch();
        let mut buffer = vec![0; 64 * 1024];
        let mut samples = Vec::new();
        let (mut credit, mut last) = (0.0_f64, 0.0);
        while clock() < time.as_secs_f64() {
            wait::pause(SLICE);
            let now = clock();
            // An idle link does not save up for later.
            credit = (credit + (now - last) * self.bytes_a_second).min(self.bytes_a_second / 4.0);
            last = now;
            while credit >= 1.0 {
                let most = (credit as usize).min(buffer.len());
                match self.stream.read(&mut buffer[..most]) {
                    Ok(0) => {
                        let why = self.reader.last_error().unwrap_or("the connection ended");
                        return Err(BenchError::ReaderEnded(why.to_owned()));
                    }
                    Ok(taken) => {
                        credit -= taken as f64;
                        let read = self.reader.read(&buffer[..taken], |_| {});
                        read.map_err(|error| BenchError::ReaderEnded(error.to_string()))?;
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(BenchError::io("read a slow link")(error)),
                }
            }
            let tally = self.reader.tally();
            let age =
                (tally.newest > 0).then(|| wait::unix_nanos().saturating_sub(tally.newest) as f64 / 1e9);
            samples.push(Sample {
                at: now,
                age,
                synced: self.reader.is_synced(),
            });
        }
        Ok(samples)
    }
}
