//! The changelog and the sweep against an executable model of them, over random schedules.
//!
//! `KRM_SEED=n` replays one schedule and prints its frames; `KRM_LONG=1` runs 100,000 of each kind.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

mod broken;
mod checks;
mod consumer;
mod figures;
mod frames;
mod lag;
mod mutations;
mod naive;
mod random;
mod run;
mod schedule;

use run::{DIGEST, Trace};
use schedule::{Outcome, Subject, Variant, schedule};

/// Runs the schedules of many seeds on two threads. The first one that fails is replayed with all its frames.
fn run_all(seeds: u32, variant: Variant, subject: Subject) -> Outcome {
    if let Ok(seed) = std::env::var("KRM_SEED") {
        let seed = seed.parse().expect("KRM_SEED is the number of a schedule");
        return schedule(seed, variant, subject, &mut Trace::Printed)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let run_half = |half: u32| {
        let mut total = Outcome::default();
        for seed in (half..seeds).step_by(2) {
            match schedule(seed, variant, subject, &mut Trace::Dropped) {
                Ok(outcome) => {
                    total.cycles += outcome.cycles;
                    total.slow += outcome.slow;
                }
                Err(error) => panic!("{variant:?} seed {seed}: {error}\nreplay it with KRM_SEED={seed}"),
            }
        }
        total
    };
    std::thread::scope(|threads| {
        let other = threads.spawn(|| run_half(1));
        let ours = run_half(0);
        let theirs = other.join().expect("a schedule failed on the other thread");
        Outcome {
            cycles: ours.cycles + theirs.cycles,
            slow: ours.slow + theirs.slow,
        }
    })
}

fn seeds() -> u32 {
    if std::env::var("KRM_LONG").is_ok_and(|long| long == "1") {
        100_000
    } else {
        5_000
    }
}

#[test]
fn the_changelog_and_the_sweep_do_what_the_model_does() {
    let outcome = run_all(seeds(), Variant::Model, Subject::Both);
    assert!(outcome.cycles > 0);
}

#[test]
fn they_do_so_with_suppression_pauses_waiting_deletions_and_shared_bytes() {
    let outcome = run_all(seeds(), Variant::Extended, Subject::Both);
    assert!(outcome.cycles > 0);
}

#[test]
fn the_model_sends_the_frames_of_its_python_original() {
    let mut trace = Trace::Digest(DIGEST);
    let mut total = Outcome::default();
    for seed in 0..1_000 {
        let outcome = schedule(seed, Variant::Model, Subject::Naive, &mut trace).unwrap();
        total.cycles += outcome.cycles;
        total.slow += outcome.slow;
    }
    let Trace::Digest(digest) = trace else {
        unreachable!("the trace stays what it was")
    };
    assert_eq!(
        (total.cycles, total.slow, digest),
        (10_315, 23, 0x124f_b332_efef_738b)
    );
}
