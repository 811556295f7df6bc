//! The readers: thousands of raw connections in one thread, which do as little as tells what was received, and when.

mod answer;
mod blocks;
mod connection;
pub(crate) mod http2;
mod reader;
pub(crate) mod slow;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::BenchError;
use crate::wait;

use self::connection::{Connection, State};

pub(crate) use self::answer::Answer;
pub(crate) use self::reader::{Digest, Held, Keeping, Numbering, Reader, Tally, digest};

/// What one read may take.
const BUFFER: usize = 256 * 1024;

/// Where readers connect, and what they ask for.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) address: SocketAddr,
    pub(crate) path: String,
    pub(crate) numbering: Numbering,
}

impl Source {
    pub(crate) fn request(&self) -> String {
        format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n",
            self.path, self.address
        )
    }
}

/// All readers of a run.
#[derive(Debug)]
pub(crate) struct Load {
    source: Source,
    poll: Poll,
    events: Events,
    readers: Vec<Connection>,
    buffer: Vec<u8>,
    /// Nanoseconds from stamp to receipt of each live object, while measured.
    delays: Option<Vec<u64>>,
    /// What readers that were dropped had received.
    dropped: Tally,
    keep_stamps: bool,
    small_buffers: bool,
    /// Whether readers take what they asked for.
    reading: bool,
}

/// What all readers have received at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receipt {
    /// The oldest of the readers' newest stamps.
    pub(crate) stamp: u64,
    /// When the last of the readers received its newest stamp; both in nanoseconds since 1970.
    pub(crate) at: u64,
}

impl Load {
    pub(crate) fn new(source: Source) -> Result<Self, BenchError> {
        Ok(Self {
            source,
            poll: Poll::new().map_err(BenchError::io("create a poll"))?,
            events: Events::with_capacity(1024),
            readers: Vec::new(),
            buffer: vec![0; BUFFER],
            delays: None,
            dropped: Tally::default(),
            keep_stamps: false,
            small_buffers: false,
            reading: true,
        })
    }

    /// Has readers that are opened from now on hold what a consumer would.
    pub(crate) fn keep_stamps(mut self) -> Self {
        self.keep_stamps = true;
        self
    }

    /// Has hardly a buffer between the server and readers that are opened from now on: one that stalls is felt at once.
    pub(crate) fn small_buffers(mut self) -> Self {
        self.small_buffers = true;
        self
    }

    /// Whether readers that are opened from now on take what they asked for; they stall otherwise.
    pub(crate) fn read(&mut self, reading: bool) {
        self.reading = reading;
    }

    /// Opens one more reader, in a free place.
    pub(crate) fn open(&mut self) -> Result<usize, BenchError> {
        let free = self.readers.iter().position(|one| one.state == State::Dropped);
        let at = free.unwrap_or(self.readers.len());
        let address = self.source.address;
        let connecting = if self.small_buffers {
            slow::connecting(address)
        } else {
            TcpStream::connect(address)
        };
        let mut stream = connecting.map_err(BenchError::io("connect"))?;
        self.poll
            .registry()
            .register(&mut stream, Token(at), Interest::WRITABLE)
            .map_err(BenchError::io("poll a connection"))?;
        let keeping = if self.keep_stamps {
            Keeping::Stamps(Held::default())
        } else {
            Keeping::Nothing
        };
        let connection = Connection {
            stream: Some(stream),
            reader: Reader::new(self.source.numbering, keeping),
            state: State::Connecting,
            newest_at: 0,
        };
        if at == self.readers.len() {
            self.readers.push(connection);
        } else {
            self.readers[at] = connection;
        }
        Ok(at)
    }

    /// Opens readers until `count` more have seen `synced`; at most `at_once` are on their way at a time.
    pub(crate) fn join(&mut self, count: usize, at_once: usize, limit: Duration) -> Result<(), BenchError> {
        let mut opened = 0;
        let before = self.synced_readers();
        let deadline = wait::now() + limit;
        loop {
            let synced = self.synced_readers().saturating_sub(before);
            if synced >= count {
                break;
            }
            while opened < count && opened - synced.min(opened) < at_once {
                self.open()?;
                opened += 1;
            }
            self.step(Duration::from_millis(100))?;
            self.no_failure()?;
            if wait::now() > deadline {
                return Err(BenchError::Late(format!(
                    "{synced} of {count} readers reached `synced` within {} s",
                    limit.as_secs()
                )));
            }
        }
        for connection in &mut self.readers {
            connection.reader.shrink();
        }
        Ok(())
    }

    /// Reads for so long.
    pub(crate) fn run(&mut self, time: Duration) -> Result<(), BenchError> {
        let until = wait::now() + time;
        self.run_until(until, |_| false).map(|_| ())
    }

    /// Reads until the condition holds, or the time has come; whether it holds.
    pub(crate) fn run_until(
        &mut self,
        until: Instant,
        condition: impl Fn(&Self) -> bool,
    ) -> Result<bool, BenchError> {
        loop {
            if condition(self) {
                return Ok(true);
            }
            let left = until.saturating_duration_since(wait::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.step(left.min(Duration::from_millis(100)))?;
        }
    }

    /// Begins to collect delays.
    pub(crate) fn measure(&mut self) {
        self.delays = Some(Vec::new());
    }

    /// The delays since [`Load::measure`], in nanoseconds.
    pub(crate) fn measured(&mut self) -> Vec<u64> {
        self.delays.take().unwrap_or_default()
    }

    /// What all readers received, those that were dropped included.
    pub(crate) fn tally(&self) -> Tally {
        let mut sum = self.dropped.clone();
        for connection in &self.readers {
            if connection.state != State::Dropped {
                sum.add(connection.reader.tally());
            }
        }
        sum
    }

    /// What all open readers have received; `None` if there are none.
    pub(crate) fn newest_of_all(&self) -> Option<Receipt> {
        let open = self.readers.iter().filter(|one| one.state == State::Open);
        let of_one = open.map(|one| Receipt {
            stamp: one.reader.tally().newest,
            at: one.newest_at,
        });
        of_one.reduce(|all, one| Receipt {
            stamp: all.stamp.min(one.stamp),
            at: all.at.max(one.at),
        })
    }

    /// The places of readers that are open and read.
    pub(crate) fn open_readers(&self) -> Vec<usize> {
        let open = |at: &usize| self.readers[*at].state == State::Open;
        (0..self.readers.len()).filter(open).collect()
    }

    pub(crate) fn synced_readers(&self) -> usize {
        self.readers
            .iter()
            .filter(|one| one.state == State::Open && one.reader.is_synced())
            .count()
    }

    /// How many places there are, those of readers that left included.
    pub(crate) fn places(&self) -> usize {
        self.readers.len()
    }

    /// How many readers' connections do not stand yet.
    pub(crate) fn connecting(&self) -> usize {
        self.count(|state| *state == State::Connecting)
    }

    /// How many readers have sent their request.
    pub(crate) fn asked(&self) -> usize {
        self.count(|state| !matches!(state, State::Connecting | State::Dropped))
    }

    fn count(&self, of: impl Fn(&State) -> bool) -> usize {
        self.readers.iter().filter(|one| of(&one.state)).count()
    }

    /// Why the server ended a reader, if it did.
    pub(crate) fn end_of(&self, reader: usize) -> Option<String> {
        let connection = &self.readers[reader];
        let State::Ended(why) = &connection.state else {
            return None;
        };
        let error = connection.reader.last_error();
        Some(error.map_or_else(|| why.clone(), str::to_owned))
    }

    /// What each open reader holds.
    pub(crate) fn digests(&self) -> Vec<Digest> {
        let open = self.readers.iter().filter(|one| one.state == State::Open);
        open.filter_map(|one| one.reader.digest()).collect()
    }

    /// The error that ended a reader, if any reader was ended.
    pub(crate) fn no_failure(&self) -> Result<(), BenchError> {
        match (0..self.readers.len()).find_map(|at| self.end_of(at)) {
            None => Ok(()),
            Some(why) => Err(BenchError::ReaderEnded(why)),
        }
    }

    /// Has a reader take nothing more.
    pub(crate) fn stall(&mut self, reader: usize) -> Result<(), BenchError> {
        let connection = &mut self.readers[reader];
        if let (State::Open, Some(stream)) = (&connection.state, &mut connection.stream) {
            self.poll
                .registry()
                .deregister(stream)
                .map_err(BenchError::io("leave a connection alone"))?;
            connection.state = State::Stalled;
        }
        Ok(())
    }

    /// Has a stalled reader go on.
    pub(crate) fn wake(&mut self, reader: usize) -> Result<(), BenchError> {
        let connection = &mut self.readers[reader];
        if let (State::Stalled, Some(stream)) = (&connection.state, &mut connection.stream) {
            self.poll
                .registry()
                .register(stream, Token(reader), Interest::READABLE)
                .map_err(BenchError::io("poll a connection"))?;
            connection.state = State::Open;
        }
        Ok(())
    }

    /// Closes a reader's connection, as a tab that is closed.
    pub(crate) fn leave(&mut self, reader: usize) {
        let connection = &mut self.readers[reader];
        if connection.state != State::Dropped {
            self.dropped.add(connection.reader.tally());
            connection.stream = None;
            connection.state = State::Dropped;
        }
    }

    pub(crate) fn leave_all(&mut self) {
        for reader in 0..self.readers.len() {
            self.leave(reader);
        }
    }

    /// Waits for whatever comes, and takes it in.
    pub(crate) fn step(&mut self, longest: Duration) -> Result<(), BenchError> {
        match self.poll.poll(&mut self.events, Some(longest)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other.map_err(BenchError::io("poll"))?,
        }
        let request = self.source.request();
        for event in &self.events {
            let Token(at) = event.token();
            let Some(connection) = self.readers.get_mut(at) else {
                continue;
            };
            if connection.state == State::Connecting {
                match connection.begin(&request) {
                    Ok(false) => continue,
                    Ok(true) => {
                        let Some(stream) = &mut connection.stream else {
                            continue;
                        };
                        let registry = self.poll.registry();
                        let (watched, state) = if self.reading {
                            let reads = registry.reregister(stream, Token(at), Interest::READABLE);
                            (reads, State::Open)
                        } else {
                            (registry.deregister(stream), State::Stalled)
                        };
                        watched.map_err(BenchError::io("poll a connection"))?;
                        connection.state = state;
                    }
                    Err(error) => {
                        connection.state = State::Ended(format!("cannot connect: {error}"));
                        connection.stream = None;
                    }
                }
                continue;
            }
            connection.drain(&mut self.buffer, self.delays.as_mut());
        }
        Ok(())
    }
}
