//! Addresses and networks that are trusted.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address, or a network in CIDR notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// The loopback interface.
    pub(crate) const LOOPBACK: [Self; 2] = [
        Self {
            address: IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)),
            prefix: 8,
        },
        Self {
            address: IpAddr::V6(Ipv6Addr::LOCALHOST),
            prefix: 128,
        },
    ];

    /// Whether the address is one of this network. An IPv4 address that came in as a mapped IPv6 one is an IPv4 address.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix)).unwrap_or(0);
                (network.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const REMEDY: &str = "write an IP address or a network, as 10.0.0.7, 10.0.0.0/8 or fd00::/8";
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| REMEDY.to_owned())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => longest,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= longest)
                .ok_or_else(|| REMEDY.to_owned())?,
        };
        Ok(Self { address, prefix })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contains(network: &str, address: &str) -> bool {
        let network: Network = network.parse().unwrap();
        network.contains(address.parse().unwrap())
    }

    #[test]
    fn an_address_is_a_network_of_one() {
        assert!(contains("10.0.0.7", "10.0.0.7"));
        assert!(!contains("10.0.0.7", "10.0.0.8"));
        assert!(contains("fd00::1", "fd00::1"));
        assert!(!contains("fd00::1", "fd00::2"));
    }

    #[test]
    fn a_network_contains_what_shares_its_prefix() {
        assert!(contains("10.1.0.0/16", "10.1.255.1"));
        assert!(!contains("10.1.0.0/16", "10.2.0.1"));
        assert!(contains("0.0.0.0/0", "203.0.113.9"));
        assert!(contains("fd00::/8", "fdff::9"));
        assert!(!contains("fd00::/8", "fe00::9"));
        assert!(contains("::/0", "2001:db8::1"));
    }

    #[test]
    fn the_families_do_not_mix_but_for_mapped_addresses() {
        assert!(!contains("0.0.0.0/0", "2001:db8::1"));
        assert!(!contains("::/0", "10.0.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
    }

    #[test]
    fn what_is_no_network_is_refused() {
        for wrong in [
            "",
            "proxy",
            "10.0.0",
            "10.0.0.0/33",
            "10.0.0.0/",
            "10.0.0.0/-1",
            "fd00::/129",
            "10.0.0.0/8/8",
        ] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong:?}");
        }
    }
}
