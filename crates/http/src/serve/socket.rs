//! The options of an accepted socket.

use std::io;

use tokio::net::TcpStream;

/// So much of a connection's bytes waits in the kernel before it is sent, and no more. What a slow link has not taken
/// stays in the feed, where a newer state replaces it.
#[cfg(any(target_os = "linux", target_os = "android"))]
const UNSENT_BYTES: u32 = 32 * 1024;

/// Prepares a socket that a host's own loop accepted: `TCP_NODELAY`, since each event is written as a whole, and, on
/// Linux, `TCP_NOTSENT_LOWAT` of 32 KiB ([tcp(7)](https://man7.org/linux/man-pages/man7/tcp.7.html)), so that what a slow
/// reader has not taken is not yet old. The send buffer stays as the system tunes it: a small one would slow down whoever
/// is far away.
///
/// # Errors
/// That of the operating system; the socket can be used nevertheless.
pub fn prepare_socket(socket: &TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    #[cfg(any(target_os = "linux", target_os = "android"))]
    socket2::SockRef::from(socket).set_tcp_notsent_lowat(UNSENT_BYTES)?;
    Ok(())
}
