//! The host's handle on a simulator.

mod acceptor;
mod objects;
mod orders;

use std::{
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};

use tokio::net::{TcpListener, TcpSocket};

use crate::{
    access::Access, builder::Builder, connection::ConnectionControl, faults::Faults, record::Counts,
    request::ReceivedRequest, shared::Shared,
};

use self::acceptor::Acceptor;

/// How many connections may wait to be accepted.
const BACKLOG: u32 = 1024;

/// A running simulator. Dropping it ends it, with all its connections.
///
/// All methods may be called from any thread; a change is visible to watches and lists when the call returns.
#[derive(Debug)]
pub struct Simulator {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Mutex<Accepting>,
}

/// Whether connections are accepted.
#[derive(Debug)]
enum Accepting {
    Yes(Acceptor),
    /// The address stays bound, where that could be done, so that nobody else is given its port meanwhile.
    Paused(Option<TcpSocket>),
}

impl Accepting {
    /// No more from now on. Returns what accepted until now.
    fn pause(&mut self) -> Option<Acceptor> {
        match std::mem::replace(self, Self::Paused(None)) {
            Self::Yes(acceptor) => Some(acceptor),
            paused @ Self::Paused(_) => {
                *self = paused;
                None
            }
        }
    }
}

impl Simulator {
    /// Settings other than the defaults.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts a simulator with the default settings, on a free port of 127.0.0.1 and the current tokio runtime.
    ///
    /// # Errors
    ///
    /// If no port can be listened on.
    ///
    /// # Cancel safety
    ///
    /// Nothing listens if the future is dropped before it is ready.
    pub async fn start() -> io::Result<Self> {
        Self::builder().start().await
    }

    pub(crate) async fn listen(shared: Shared, address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(shared);
        let acceptor = Acceptor::start(Arc::clone(&shared), listener);
        Ok(Self {
            shared,
            address,
            accepting: Mutex::new(Accepting::Yes(acceptor)),
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The time of the simulator's clock, which stamps its objects.
    pub fn now(&self) -> SystemTime {
        self.shared.now()
    }

    /// Tokens and rules.
    pub fn access(&self) -> &Access {
        &self.shared.access
    }

    /// Faults for requests to come.
    pub fn faults(&self) -> &Faults {
        &self.shared.faults
    }

    /// What was asked so far, and what is open.
    pub fn counts(&self) -> Counts {
        self.shared.record.counts()
    }

    /// Waits until the counts satisfy a condition, and returns them. It has no deadline of its own.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the future is dropped.
    pub async fn wait_for(&self, condition: impl Fn(&Counts) -> bool) -> Counts {
        self.shared.record.until(condition).await
    }

    /// The last 10,000 requests, oldest first.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.record.log()
    }

    /// Empties the log of requests; the counters go on.
    pub fn clear_requests(&self) {
        self.shared.record.clear_log();
    }

    /// Resets all connections (TCP RST).
    pub fn reset_connections(&self) {
        self.shared.each_connection(ConnectionControl::reset);
    }

    /// Says nothing more on any open connection and closes none, as a host that lost its power: its clients get neither
    /// FIN nor RST, and no answer. New connections are served. [`Simulator::pause`] closes them.
    pub fn vanish_connections(&self) {
        self.shared.each_connection(ConnectionControl::vanish);
    }

    /// Tells all connections to end after their open requests: GOAWAY in HTTP/2.
    pub fn go_away(&self) {
        self.shared.each_connection(ConnectionControl::go_away);
    }

    /// Stops listening and drops all connections, as a process that was killed; the objects stay. New connections are
    /// refused until [`Simulator::resume`].
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on by itself.
    pub async fn pause(&self) {
        let acceptor = self.accepting().pause();
        if let Some(acceptor) = acceptor {
            acceptor.stop().await;
            if let Accepting::Paused(bound @ None) = &mut *self.accepting() {
                *bound = self.bind().ok();
            }
        }
        self.shared.close_vanished();
    }

    /// Listens again at the same address after [`Simulator::pause`]. Does nothing if it listens. To
    /// be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the address is taken by now.
    pub fn resume(&self) -> io::Result<()> {
        let mut accepting = self.accepting();
        match &mut *accepting {
            Accepting::Yes(_) => {}
            Accepting::Paused(bound) => {
                let socket = match bound.take() {
                    Some(socket) => socket,
                    None => self.bind()?,
                };
                let listener = socket.listen(BACKLOG)?;
                *accepting = Accepting::Yes(Acceptor::start(Arc::clone(&self.shared), listener));
            }
        }
        Ok(())
    }

    /// A socket at the address, which refuses connections until it listens.
    fn bind(&self) -> io::Result<TcpSocket> {
        let socket = if self.address.is_ipv4() {
            TcpSocket::new_v4()?
        } else {
            TcpSocket::new_v6()?
        };
        socket.set_reuseaddr(true)?;
        socket.bind(self.address)?;
        Ok(socket)
    }

    /// Stops listening, drops all connections and waits until they are gone.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the stop goes on by itself.
    pub async fn shutdown(self) {
        self.pause().await;
    }

    fn accepting(&self) -> MutexGuard<'_, Accepting> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
