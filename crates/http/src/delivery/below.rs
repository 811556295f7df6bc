//! Which of two guards counts, where one stands over the other.
//!
//! The one over TLS polls the one of the socket within its own poll, so on the same thread. It leaves the time to the socket's
//! as long as it is that one which waits, and flushes to it where it sees them. Nothing else would tell the two apart from the
//! sockets of two connections.

use std::cell::Cell;
use std::sync::Arc;
use std::task::Poll;

use super::Connection;

thread_local! {
    /// What a guard did last, and where its connection lies.
    static LATEST: Cell<Option<(usize, Did)>> = const { Cell::new(None) };
}

/// What a guard did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// It waits.
    Wait,
    /// It completed a flush.
    Flush,
}

fn place(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection).addr()
}

/// A guard of the connection did this.
pub(super) fn did(connection: &Arc<Connection>, what: Did) {
    LATEST.set(Some((place(connection), what)));
}

/// Polls what is below a guard. Returns also what another guard of the same connection did last there.
pub(super) fn poll<T>(
    connection: &Arc<Connection>,
    poll: impl FnOnce() -> Poll<T>,
) -> (Poll<T>, Option<Did>) {
    LATEST.set(None);
    let polled = poll();
    let below = LATEST.get().filter(|(at, _)| *at == place(connection));
    (polled, below.map(|(_, what)| what))
}
