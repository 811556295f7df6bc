//! The limit: what a server can do that has nothing to do but hand bytes to sockets.
//!
//! Everything is formatted before it is needed: the opening snapshot once, with its head and its chunks, and each live
//! event once for all readers. One thread, one write for each delivery, and no more calls to the kernel than that:
//! sockets are written to without being asked first, and only what they did not take is waited for. A runtime's task for
//! each connection would add a wake-up to each delivery, and a second thread takes the readers' own core.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::Duration;

use clap::Args;
use krm_stream_simulator::Simulator;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};
use serde_json::json;

use super::objects::{Objects, RESOURCE};
use super::{Order, Pace, announce, obey};
use crate::bench::BenchError;
use crate::wait;

const LISTENER: Token = Token(usize::MAX);
const ORDERS: Token = Token(usize::MAX - 1);

/// What a chunk of the snapshot holds, as a server sends it that fills its buffer before it writes.
const SNAPSHOT_CHUNK: usize = 64 * 1024;

#[derive(Clone, Debug, Args)]
pub(crate) struct Flags {
    /// How many objects the snapshot has.
    #[arg(long)]
    objects: usize,
    /// The size of each, in bytes.
    #[arg(long)]
    object_bytes: usize,
}

/// All that is sent, formatted beforehand.
#[derive(Debug)]
struct Preformatted {
    /// Head, `reset`, objects and `synced`, in chunks.
    opening: Vec<u8>,
    /// Of one event: between type and stamp, and behind the stamp.
    event: (Vec<u8>, Vec<u8>),
    next_seq: u64,
}

impl Preformatted {
    fn new(objects: &[bytes::Bytes]) -> Self {
        let mut body = Vec::new();
        body.extend_from_slice(
            br#"data: {"seq":1,"type":"reset","scope":{"target":"","version":"v1","resource":"configmaps","namespace":"bench"},"projection":"krm-full/v1"}"#,
        );
        body.extend_from_slice(b"\n\n");
        let mut seq = 1_u64;
        for object in objects {
            seq += 1;
            body.extend_from_slice(format!(r#"data: {{"seq":{seq},"type":"added","object":"#).as_bytes());
            body.extend_from_slice(object);
            body.extend_from_slice(b",\"redacted\":[]}\n\n");
        }
        seq += 1;
        body.extend_from_slice(format!("data: {{\"seq\":{seq},\"type\":\"synced\"}}\n\n").as_bytes());
        let mut opening = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-krm-stream-protocol: 1\r\n\
            cache-control: no-cache, no-transform\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n"
            .to_vec();
        for piece in body.chunks(SNAPSHOT_CHUNK) {
            chunk(&[piece], &mut opening);
        }
        let object = objects.first().map_or(&b""[..], |object| object);
        let before = memchr::memmem::find(object, b"\"stamp\":\"").map_or(object.len(), |at| at + 9);
        let digits = object[before..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let mut behind = object[before + digits..].to_vec();
        behind.extend_from_slice(b",\"redacted\":[]}\n\n");
        Self {
            opening,
            event: (object[..before].to_vec(), behind),
            next_seq: seq + 1,
        }
    }

    /// The next event, stamped now.
    fn event(&mut self, out: &mut Vec<u8>) {
        let head = format!(r#"data: {{"seq":{},"type":"modified","object":"#, self.next_seq);
        self.next_seq += 1;
        out.clear();
        let stamp = wait::unix_nanos().to_string();
        chunk(
            &[head.as_bytes(), &self.event.0, stamp.as_bytes(), &self.event.1],
            out,
        );
    }
}

fn chunk(parts: &[&[u8]], out: &mut Vec<u8>) {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(format!("{length:X}\r\n").as_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

#[derive(Debug)]
struct Reader {
    stream: TcpStream,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The request's end has not come.
    Asking,
    /// So much of the opening was taken; `behind` is what is due after it.
    Opening { taken: usize, behind: Vec<u8> },
    /// It is owed nothing.
    Live,
    /// It did not take all of it.
    Behind(Vec<u8>),
}

impl Reader {
    /// Reads what it asks; whether it is still there.
    fn listen(&mut self) -> bool {
        let mut buffer = [0; 2048];
        loop {
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(taken) => {
                    // Its request is one segment, and nothing follows.
                    if buffer[..taken].ends_with(b"\r\n\r\n") && matches!(self.state, State::Asking) {
                        self.state = State::Opening {
                            taken: 0,
                            behind: Vec::new(),
                        };
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Writes what it is owed, as far as it takes it; whether it is still there.
    fn catch_up(&mut self, opening: &[u8]) -> bool {
        if let State::Opening { taken, behind } = &mut self.state {
            match write(&mut self.stream, &opening[*taken..]) {
                None => return false,
                Some(written) => *taken += written,
            }
            if *taken < opening.len() {
                return true;
            }
            self.state = State::Behind(std::mem::take(behind));
        }
        if let State::Behind(rest) = &mut self.state {
            match write(&mut self.stream, rest) {
                None => return false,
                Some(written) if written == rest.len() => self.state = State::Live,
                Some(written) => {
                    rest.drain(..written);
                }
            }
        }
        true
    }

    /// Sends an event; whether the reader is still there.
    fn send(&mut self, event: &[u8]) -> bool {
        match &mut self.state {
            State::Asking => {}
            State::Opening { behind, .. } | State::Behind(behind) => behind.extend_from_slice(event),
            State::Live => match write(&mut self.stream, event) {
                None => return false,
                Some(written) if written < event.len() => {
                    self.state = State::Behind(event[written..].to_vec());
                }
                Some(_) => {}
            },
        }
        true
    }
}

/// Writes until the socket takes no more; how much it took, or `None` if it is gone.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> Option<usize> {
    let mut written = 0;
    while written < bytes.len() {
        match stream.write(&bytes[written..]) {
            Ok(0) => return None,
            Ok(taken) => written += taken,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(written)
}

/// The objects as the API server of the bench sends them.
fn objects(flags: &Flags) -> Result<Vec<bytes::Bytes>, BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start a runtime"))?;
    runtime.block_on(async {
        let simulator = Simulator::start().await.map_err(BenchError::io("listen"))?;
        Objects::create(&simulator, flags.objects, flags.object_bytes)
            .map_err(|error| BenchError::Role(error.to_string()))?;
        Ok(simulator.objects(RESOURCE))
    })
}

pub(super) fn run(flags: &Flags) -> Result<(), BenchError> {
    let io = BenchError::io;
    let mut bytes = Preformatted::new(&objects(flags)?);
    let mut poll = Poll::new().map_err(io("create a poll"))?;
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut listener = TcpListener::bind(address).map_err(io("listen"))?;
    poll.registry()
        .register(&mut listener, LISTENER, Interest::READABLE)
        .map_err(io("poll a listener"))?;
    let waker = Waker::new(poll.registry(), ORDERS).map_err(io("create a waker"))?;
    let (sender, orders) = mpsc::channel();
    obey(move |order| {
        // The loop below ends with the process only.
        let _ = sender
            .send(order)
            .map_err(|_| ())
            .and_then(|()| waker.wake().map_err(|_| ()));
    });
    announce(listener.local_addr().map_err(io("listen"))?);

    let mut readers: Vec<Option<Reader>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut events = Events::with_capacity(1024);
    let clock = wait::stopwatch();
    let (mut pace, mut changes) = (Pace::STOPPED, 0_u64);
    let mut event = Vec::new();
    loop {
        let longest = pace.next(clock()).map(Duration::from_secs_f64);
        match poll.poll(&mut events, longest) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(io("poll")(error)),
            Ok(()) | Err(_) => {}
        }
        for ready in &events {
            match ready.token() {
                LISTENER => accept(&listener, &poll, &mut readers, &mut free)?,
                ORDERS => {
                    while let Ok(order) = orders.try_recv() {
                        match order {
                            Order::Rate(rate) => pace = Pace::begin(rate, u64::MAX, clock()),
                            Order::Burst { changes, rate } => pace = Pace::begin(rate, changes, clock()),
                            Order::Report => {
                                println!("{}", json!({"changes": changes}));
                            }
                            Order::Digest => println!("{}", json!({"objects": 0, "sum": 0})),
                        }
                    }
                }
                Token(at) => {
                    let reader = &mut readers[at];
                    let stays = reader.as_mut().is_none_or(|reader| {
                        (!ready.is_readable() || reader.listen()) && reader.catch_up(&bytes.opening)
                    });
                    if !stays {
                        *reader = None;
                        free.push(at);
                    }
                }
            }
        }
        for _ in 0..pace.due(clock()) {
            changes += 1;
            bytes.event(&mut event);
            for (at, reader) in readers.iter_mut().enumerate() {
                if reader.as_mut().is_some_and(|reader| !reader.send(&event)) {
                    *reader = None;
                    free.push(at);
                }
            }
        }
    }
}

fn accept(
    listener: &TcpListener,
    poll: &Poll,
    readers: &mut Vec<Option<Reader>>,
    free: &mut Vec<usize>,
) -> Result<(), BenchError> {
    loop {
        let (mut stream, _) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(BenchError::io("accept")(error)),
        };
        let at = free.pop().unwrap_or_else(|| {
            readers.push(None);
            readers.len() - 1
        });
        let both = Interest::READABLE | Interest::WRITABLE;
        stream
            .set_nodelay(true)
            .and_then(|()| poll.registry().register(&mut stream, Token(at), both))
            .map_err(BenchError::io("poll a connection"))?;
        readers[at] = Some(Reader {
            stream,
            state: State::Asking,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::load::{Keeping, Numbering, Reader as LoadReader};

    #[test]
    fn what_is_preformatted_is_a_stream_that_the_readers_understand() {
        let object = |uid: &str| {
            bytes::Bytes::from(format!(
                r#"{{"metadata":{{"uid":"{uid}"}},"data":{{"stamp":"1","filling":"x"}}}}"#
            ))
        };
        let mut bytes = Preformatted::new(&[object("a"), object("b")]);
        let mut reader = LoadReader::new(Numbering::Preformatted, Keeping::Nothing);
        reader.read(&bytes.opening, |_| {}).unwrap();
        assert!(reader.is_synced());
        let mut event = Vec::new();
        let before = wait::unix_nanos();
        for _ in 0..2 {
            bytes.event(&mut event);
            reader.read(&event, |stamp| assert!(stamp >= before)).unwrap();
        }
        let tally = reader.tally();
        assert_eq!(
            (tally.snapshot, tally.live, tally.gaps, tally.unreadable),
            (2, 2, 0, 0)
        );
    }
}
