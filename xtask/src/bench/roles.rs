//! The parts that run as processes of their own, and how the bench speaks with them: a line in, a line of JSON out.

pub(super) mod limit;
pub(super) mod objects;
pub(super) mod upstream;

use std::io::BufRead as _;
use std::net::SocketAddr;

use clap::Subcommand;

use super::BenchError;

/// A part of the bench that this process is.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Role {
    /// The API server: a simulator whose objects change at a rate.
    Upstream(upstream::Flags),
    /// The limit: preformatted bytes on raw sockets.
    Limit(limit::Flags),
}

/// What a role is told on its standard input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Order {
    /// Change so many objects a second from now on; 0 stops.
    Rate(f64),
    /// Change so many objects at that rate, then stop.
    Burst { changes: u64, rate: f64 },
    /// Answer with what was done.
    Report,
    /// Answer with the digest of all objects.
    Digest,
}

impl Order {
    pub(crate) fn line(self) -> String {
        match self {
            Self::Rate(rate) => format!("rate {rate}\n"),
            Self::Burst { changes, rate } => format!("burst {changes} {rate}\n"),
            Self::Report => "report\n".to_owned(),
            Self::Digest => "digest\n".to_owned(),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let order = match words.next()? {
            "rate" => Self::Rate(words.next()?.parse().ok()?),
            "burst" => Self::Burst {
                changes: words.next()?.parse().ok()?,
                rate: words.next()?.parse().ok()?,
            },
            "report" => Self::Report,
            "digest" => Self::Digest,
            _ => return None,
        };
        words.next().is_none().then_some(order)
    }
}

/// Becomes the role; ends when standard input does.
///
/// # Errors
///
/// When it cannot listen or start.
pub(super) fn run(role: &Role) -> Result<(), BenchError> {
    match role {
        Role::Upstream(flags) => upstream::run(flags),
        Role::Limit(flags) => limit::run(flags),
    }
}

/// Says where a role listens, as the first line of its output.
fn announce(address: SocketAddr) {
    println!("{address}");
}

/// Hands each order on from a thread of its own, then ends the process: nobody speaks with it any more.
fn obey(mut hand_on: impl FnMut(Order) + Send + 'static) {
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            match line.as_deref().map(Order::parse) {
                Ok(Some(order)) => hand_on(order),
                Ok(None) => eprintln!("an order that is not known: {line:?}"),
                Err(_) => break,
            }
        }
        std::process::exit(0);
    });
}

/// When changes are due: evenly spaced, and a late one does not move those that follow.
#[derive(Debug)]
struct Pace {
    rate: f64,
    since: f64,
    done: u64,
    most: u64,
}

impl Pace {
    const STOPPED: Self = Self {
        rate: 0.0,
        since: 0.0,
        done: 0,
        most: 0,
    };

    /// `most` changes at `rate` a second from `now`, in seconds.
    fn begin(rate: f64, most: u64, now: f64) -> Self {
        Self {
            rate,
            since: now,
            done: 0,
            most: if rate > 0.0 { most } else { 0 },
        }
    }

    /// How many seconds from `now` until the next change; `None` if there is none.
    fn next(&self, now: f64) -> Option<f64> {
        (self.done < self.most).then(|| {
            let due = self.since + (self.done + 1) as f64 / self.rate;
            (due - now).max(0.0)
        })
    }

    /// How many changes are due at `now`; they count as done.
    fn due(&mut self, now: f64) -> u64 {
        if self.done >= self.most {
            return 0;
        }
        let by_now = ((now - self.since) * self.rate).max(0.0) as u64;
        let due = by_now.min(self.most).saturating_sub(self.done);
        self.done += due;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_survives_its_line() {
        for order in [
            Order::Rate(2.5),
            Order::Burst {
                changes: 20_000,
                rate: 1000.0,
            },
            Order::Report,
            Order::Digest,
        ] {
            assert_eq!(Order::parse(order.line().trim_end()), Some(order));
        }
        assert_eq!(Order::parse("rate"), None);
        assert_eq!(Order::parse("report now"), None);
        assert_eq!(Order::parse("go"), None);
    }

    #[test]
    fn changes_are_evenly_spaced_and_end_with_the_burst() {
        let mut pace = Pace::begin(10.0, 5, 100.0);
        assert_eq!(pace.due(100.05), 0);
        assert_eq!(pace.due(100.21), 2);
        assert!((pace.next(100.21).unwrap() - 0.09).abs() < 1e-6);
        assert_eq!(pace.due(200.0), 3);
        assert_eq!((pace.due(300.0), pace.next(300.0)), (0, None));
        assert_eq!(Pace::begin(0.0, u64::MAX, 1.0).next(2.0), None);
    }
}
