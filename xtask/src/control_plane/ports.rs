//! Ports for processes that are killed and started again.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::io;
use std::net::{Ipv4Addr, TcpListener};

/// Below this are ports that people remember.
const LOWEST: u16 = 10_000;

/// Where Linux' own choice begins, if it does not say.
const CHOSEN_BY_THE_SYSTEM_FROM: u16 = 32_768;

/// So many different ports that are free.
///
/// They are none of those that the system gives to whoever asks for any, as each outgoing connection does: they are still
/// free when a process that was killed is started again.
pub(super) fn free<const COUNT: usize>() -> io::Result<[u16; COUNT]> {
    let below = chosen_by_the_system_from();
    let drawn = RandomState::new().hash_one(std::process::id()) % u64::from(below - LOWEST);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is left of a division by a port's number"
    )]
    let begin = LOWEST + drawn as u16;
    let mut candidates = (begin..below).chain(LOWEST..begin);
    let mut ports = [0; COUNT];
    for port in &mut ports {
        *port = candidates
            .find(|candidate| TcpListener::bind((Ipv4Addr::LOCALHOST, *candidate)).is_ok())
            .ok_or_else(|| io::Error::from(io::ErrorKind::AddrInUse))?;
    }
    Ok(ports)
}

fn chosen_by_the_system_from() -> u16 {
    std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|from| *from > LOWEST + 1_000)
        .unwrap_or(CHOSEN_BY_THE_SYSTEM_FROM)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_ports_differ_and_are_none_that_the_system_gives_to_others() {
        let [a, b, c] = free().unwrap();
        assert!(a != b && b != c && a != c);
        let lowest = chosen_by_the_system_from();
        assert!(
            [a, b, c].iter().all(|port| (LOWEST..lowest).contains(port)),
            "{a}, {b}, {c}"
        );
    }
}
