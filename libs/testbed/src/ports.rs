//! Loopback ports that stay ours.
//!
//! Port 0 lets the kernel pick one, but from the ephemeral range, where it also finds the source ports of
//! outgoing connections. A drill kills a server and starts it again on *the same* port; meanwhile its clients
//! keep connecting, and sooner or later one of them gets that very port as its source port. Then the server
//! cannot bind, or worse: a client that connects from the port to the port is connected to itself.
//! So ports come from below that range, at random (another process may be picking too), and none is given out
//! twice in one process.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anyhow::bail;

/// Where ports are taken from, if the ephemeral range does not reach down into it.
const PORTS: Range<u16> = 20_000..32_000;
/// How many ports are tried before we say that there is none.
const TRIES: usize = 1000;

static TAKEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());

/// A free port on 127.0.0.1, for as long as this process runs.
///
/// # Errors
/// When a thousand ports in a row are taken.
pub fn free() -> anyhow::Result<u16> {
    let range = below_ephemeral(fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok().as_deref());
    for _ in 0..TRIES {
        let port = fastrand::u16(range.clone());
        if TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) && is_free(port) {
            return Ok(port);
        }
    }
    bail!("no free port found in {}..{} on 127.0.0.1", range.start, range.end)
}

/// A free address on loopback, see [`free`].
///
/// # Errors
/// As [`free`].
pub fn free_address() -> anyhow::Result<SocketAddr> {
    Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, free()?)))
}

/// The first free port from this one on, for a door that people know by its number.
///
/// # Errors
/// When the hundred ports from there are all taken.
pub fn first_free_from(first: u16) -> anyhow::Result<u16> {
    let last = first.saturating_add(99);
    for port in first..=last {
        if is_free(port) && TAKEN.lock().unwrap_or_else(PoisonError::into_inner).insert(port) {
            return Ok(port);
        }
    }
    bail!("the ports {first} to {last} on 127.0.0.1 are all taken")
}

/// Whether nobody listens on this loopback port just now.
pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// The part of our range below the kernel's ephemeral range. A kernel that hands out nearly all ports leaves
/// none; then ours is used as it is.
fn below_ephemeral(kernel: Option<&str>) -> Range<u16> {
    let lowest = kernel.and_then(|range| range.split_whitespace().next()).and_then(|low| low.parse().ok());
    match lowest {
        Some(low) if low > PORTS.start + 1000 => PORTS.start..PORTS.end.min(low),
        _ => PORTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_handed_out_twice_and_each_can_be_bound() {
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let port = free().unwrap();
            assert!(PORTS.contains(&port));
            assert!(seen.insert(port), "{port} came twice");
            TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
        }
    }

    #[test]
    fn a_taken_door_gives_the_next_one() {
        let held = TcpListener::bind((Ipv4Addr::LOCALHOST, free().unwrap())).unwrap();
        let port = held.local_addr().unwrap().port();
        assert!(first_free_from(port).unwrap() > port);
    }

    #[test]
    fn the_ephemeral_range_is_kept_out() {
        assert_eq!(below_ephemeral(Some("32768\t60999\n")), 20_000..32_000);
        assert_eq!(below_ephemeral(Some("25000 60999")), 20_000..25_000);
        assert_eq!(below_ephemeral(Some("1024 65535")), 20_000..32_000);
        assert_eq!(below_ephemeral(None), 20_000..32_000);
        assert_eq!(below_ephemeral(Some("nonsense")), 20_000..32_000);
    }
}
