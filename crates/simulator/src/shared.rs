//! What all connections and the host's handle share.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::SystemTime,
};

use tokio::net::TcpStream;

use crate::{
    access::Access,
    builder::Settings,
    connection::ConnectionControl,
    faults::Faults,
    record::Record,
    store::{Origin, Store, Writing},
    watch::OpenWatches,
};

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) access: Access,
    pub(crate) faults: Faults,
    pub(crate) record: Record,
    pub(crate) watches: OpenWatches,
    store: Mutex<Store>,
    connections: Mutex<Connections>,
    audits: AtomicU64,
    /// Connections whose host vanished, as their clients see it.
    vanished: Mutex<Vec<TcpStream>>,
}

#[derive(Debug, Default)]
struct Connections {
    opened: u64,
    open: BTreeMap<u64, Weak<ConnectionControl>>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Shared")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn new(settings: Settings, store: Store) -> Self {
        Self {
            settings,
            access: Access::default(),
            faults: Faults::default(),
            record: Record::default(),
            watches: OpenWatches::default(),
            store: Mutex::new(store),
            connections: Mutex::default(),
            audits: AtomicU64::new(0),
            vanished: Mutex::default(),
        }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writing(&self, origin: Origin) -> Writing {
        Writing {
            now: self.now(),
            origin,
        }
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.settings.clock)()
    }

    /// The next `Audit-Id`.
    pub(crate) fn audit_id(&self) -> String {
        let number = self.audits.fetch_add(1, Ordering::Relaxed);
        format!("00000000-0000-4000-8000-{number:012x}")
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn connection_opened(self: &Arc<Self>, control: &Arc<ConnectionControl>) -> ConnectionGuard {
        self.record.connection_opened();
        let mut connections = self.connections();
        connections.opened += 1;
        let id = connections.opened;
        connections.open.insert(id, Arc::downgrade(control));
        ConnectionGuard {
            shared: Arc::clone(self),
            id,
        }
    }

    /// Does something to each open connection.
    pub(crate) fn each_connection(&self, command: impl Fn(&ConnectionControl)) {
        for control in self.connections().open.values().filter_map(Weak::upgrade) {
            command(&control);
        }
    }

    /// Keeps a connection open on which nothing is ever said or heard again.
    pub(crate) fn keep_in_silence(&self, stream: TcpStream) {
        self.vanished().push(stream);
    }

    /// Closes the connections that were kept in silence.
    pub(crate) fn close_vanished(&self) {
        self.vanished().clear();
    }

    fn vanished(&self) -> MutexGuard<'_, Vec<TcpStream>> {
        self.vanished.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn connections(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that is counted as open.
pub(crate) struct ConnectionGuard {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.shared.connections().open.remove(&self.id);
        self.shared.record.connection_closed();
    }
}
