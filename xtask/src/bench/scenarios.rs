//! What is measured, by name.

mod fan_out;
mod idle;
mod slow_link;
mod soak;
mod stalled;
mod storm;
mod throughput;

use std::path::PathBuf;
use std::time::Duration;

use super::BenchError;
use super::figures::{Bar, Figure};
use super::servers::{Kind, Size};

/// The size of an object as the watch sends it.
pub(crate) const OBJECT_BYTES: usize = 2_300;

/// How a run is done.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) gateway: PathBuf,
    /// How often each of gateway and limit is run, in turn.
    pub(crate) runs: usize,
    /// How long live delivery is measured in each run.
    pub(crate) live: Duration,
    /// How many snapshot objects a measurement of joins has at least.
    pub(crate) join_objects: u64,
    pub(crate) effort: Effort,
    pub(crate) soak: Duration,
}

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What the figures are told from.
    Full,
    /// Less of everything; the figures are rough.
    Quick,
    /// Next to nothing: whether every scenario still gives its figures.
    Smoke,
}

impl Effort {
    pub(crate) fn name(self) -> &'static str {
        self.pick("full", "quick", "smoke")
    }

    pub(crate) fn pick<T>(self, full: T, quick: T, smoke: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Smoke => smoke,
        }
    }
}

impl Settings {
    fn gateway(&self, flags: &[&str]) -> Kind {
        Kind::Gateway {
            program: self.gateway.clone(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        }
    }
}

/// A scenario of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether it takes minutes even when all is short.
    pub(crate) is_long: bool,
    run: fn(&Settings, &'static str) -> Result<Vec<Figure>, BenchError>,
}

impl Scenario {
    pub(crate) fn run(&self, settings: &Settings) -> Result<Vec<Figure>, BenchError> {
        (self.run)(settings, self.name)
    }
}

/// What one live delivery costs the gateway beside what it costs at 100 streams and 1,000 objects.
pub(crate) fn flatness(figures: &[Figure]) -> Vec<Figure> {
    const BASE: &str = "fan-out-100";
    let live: Vec<&Figure> = figures
        .iter()
        .filter(|figure| figure.name == fan_out::LIVE)
        .collect();
    let Some(base) = live.iter().find(|figure| figure.scenario == BASE) else {
        return Vec::new();
    };
    let others = live.iter().filter(|figure| figure.scenario != BASE);
    let beside = |value: Option<f64>, base: Option<f64>| Some(value? / base?);
    others
        .map(|figure| {
            let name = format!("{} beside {BASE}", fan_out::LIVE);
            let mut flat = Figure::new(figure.scenario, name, "times").bar(Bar::near(1.0));
            flat.gateway = beside(figure.gateway_value(), base.gateway_value())
                .into_iter()
                .collect();
            flat.limit = beside(figure.limit_value(), base.limit_value())
                .into_iter()
                .collect();
            flat
        })
        .collect()
}

const fn size(objects: usize) -> Size {
    Size {
        objects,
        object_bytes: OBJECT_BYTES,
    }
}

/// All scenarios, in the order in which they run.
pub(crate) const SCENARIOS: [Scenario; 11] = [
    Scenario {
        name: "throughput",
        about: "decoding and projecting, in this process",
        is_long: false,
        run: throughput::run,
    },
    Scenario {
        name: "fan-out-100",
        about: "100 streams, 1,000 objects, 50 changes a second",
        is_long: false,
        run: |settings, name| fan_out::run(settings, name, 100, size(1_000)),
    },
    Scenario {
        name: "fan-out-1000",
        about: "1,000 streams, 1,000 objects, 5 changes a second",
        is_long: false,
        run: |settings, name| fan_out::run(settings, name, 1_000, size(1_000)),
    },
    Scenario {
        name: "fan-out-5000",
        about: "5,000 streams, 1,000 objects, 1 change a second",
        is_long: false,
        run: |settings, name| fan_out::run(settings, name, 5_000, size(1_000)),
    },
    Scenario {
        name: "fan-out-large",
        about: "100 streams, 50,000 objects, 50 changes a second",
        is_long: true,
        run: |settings, name| fan_out::run(settings, name, 100, size(50_000)),
    },
    Scenario {
        name: "idle",
        about: "100, 1,000 and 5,000 idle streams, HTTP/1.1 and HTTP/2",
        is_long: false,
        run: idle::run,
    },
    Scenario {
        name: "stalled",
        about: "50 live streams, with and without a stalled one",
        is_long: false,
        run: stalled::run,
    },
    Scenario {
        name: "storm",
        about: "5,000 streams join within a second, leave, join again",
        is_long: false,
        run: storm::run,
    },
    Scenario {
        name: "slow-link",
        about: "a link of 50 KiB/s, with more changes than it carries",
        is_long: true,
        run: slow_link::overloaded,
    },
    Scenario {
        name: "slow-link-calm",
        about: "the same link with 5 changes a second",
        is_long: true,
        run: slow_link::calm,
    },
    Scenario {
        name: "soak",
        about: "1,000 streams that come, go and stall, while watches are recycled",
        is_long: true,
        run: soak::run,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_of_a_delivery_is_compared_with_that_at_a_hundred_streams() {
        let live = |scenario, gateway| Figure::new(scenario, fan_out::LIVE, "CPU s").of(gateway);
        let other = Figure::new("fan-out-5000", "warm join", "CPU s").of(9.0);
        let flat = flatness(&[live("fan-out-100", 10.0), other, live("fan-out-5000", 13.0)]);
        let values: Vec<_> = flat
            .iter()
            .map(|one| (one.scenario, one.gateway_value()))
            .collect();
        assert_eq!(values, [("fan-out-5000", Some(1.3))]);
        assert_eq!(flat[0].is_reached(), Some(false));
        let table = crate::bench::report::table(&flat);
        let told =
            "| fan-out-5000 | live delivery beside fan-out-100, times | 1.30 |  |  | 1 ± 20 % | missed |";
        assert_eq!(table.lines().last(), Some(told));
        assert!(flatness(&[live("fan-out-5000", 13.0)]).is_empty());
    }

    #[test]
    fn scenarios_have_names_of_their_own() {
        let names: std::collections::BTreeSet<_> = SCENARIOS.iter().map(|one| one.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
    }
}
