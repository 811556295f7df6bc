//! The hand-over of changes to streams under many schedules of threads: append against join, wake-up and leave.
//!
//! It compiles the files of the hand-over, the changelog and the sweep with the checker's locks in place of the standard
//! library's. A lost wake-up is a stream that waits for ever, which the checker reports as a deadlock. Faults that are put in
//! on purpose must be found.
//!
//! `cargo test -p krm-stream-shared --test handover` runs a few seconds; `KRM_LONG=1` fifty times as many schedules.

#![expect(clippy::unwrap_used, reason = "a check that fails panics")]
#![expect(clippy::print_stdout, reason = "it is its own main")]

#[path = "../../src"]
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    clippy::expect_used,
    reason = "only a part of these files is used, and their own crate is where they are checked"
)]
mod src {
    pub(crate) mod changelog;
    #[path = "feed"]
    pub(crate) mod feed {
        pub(crate) mod handover;
    }
    pub(crate) mod sweep;
}

mod scene;

use std::panic::{AssertUnwindSafe, catch_unwind};

use scene::{Fault, Scene};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use src::feed::handover;
use src::{changelog, sweep};

/// The locks of the files above.
mod sync {
    pub(crate) use std::sync::PoisonError;

    pub(crate) use shuttle::sync::atomic::{AtomicU64, Ordering};
    pub(crate) use shuttle::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard};
}

/// How many threads a schedule of the second kind takes the turn from at most.
const PREEMPTIONS: usize = 3;

fn main() {
    let is_long = std::env::var("KRM_LONG").is_ok_and(|long| long == "1");
    let schedules = if is_long { 50_000 } else { 1_000 };
    for scene in Scene::ALL {
        run(schedules, move || scene.play(None));
        println!("{scene:?}: {} schedules hold", 2 * schedules);
    }
    std::panic::set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        let found = catch_unwind(AssertUnwindSafe(|| {
            run(10 * schedules, move || fault.scene().play(Some(fault)));
        }))
        .is_err();
        println!("{fault:?}: {}", if found { "found" } else { "NOT FOUND" });
        missed.extend((!found).then_some(fault));
    }
    let _ = std::panic::take_hook();
    assert!(missed.is_empty(), "{missed:?} were not found");
}

fn run(schedules: usize, check: impl Fn() + Clone + Send + Sync + 'static) {
    let mut config = Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    Runner::new(RandomScheduler::new(schedules), config.clone()).run(check.clone());
    Runner::new(PctScheduler::new(PREEMPTIONS, schedules), config).run(check);
}
