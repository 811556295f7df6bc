//! Each rule is broken once, and found out: the checks of a schedule are worth what they catch.

use crate::broken::Rule;
use crate::run::Trace;
use crate::schedule::{Subject, Variant, schedule};

/// What finds a broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FoundBy {
    /// A check of what a consumer holds, what a feed keeps, or what a poll sends: wrong whatever it is compared with.
    Checks,
    /// Only the comparison with the model: other frames are sent, though no consumer comes to harm.
    Comparison,
}

/// What has to find it.
fn expected(rule: Rule) -> FoundBy {
    /// Breaking these tells a consumer too much, or ends or forgives a slow reader at another moment.
    const HARMLESS: &[Rule] = &[
        Rule::CycleForgetsDeletions,
        Rule::NewEpochForgivesOverflow,
        Rule::RecoveryIsRemembered,
        Rule::RecoveryMayOweAllKept,
        Rule::SyncedEndsRecovery,
        Rule::UnsentReturnIsNotTold,
        Rule::UnsentDeletionIsNotTold,
        Rule::UnseenDeletionIsNotTold,
        Rule::QueueHoldsItsDepth,
        Rule::QueueHoldsNoMore,
        Rule::OldBytesAreNotHandedOut,
    ];
    if HARMLESS.contains(&rule) {
        FoundBy::Comparison
    } else {
        FoundBy::Checks
    }
}

/// At most so many schedules are tried before a broken rule counts as not found.
const SEEDS: u32 = 200;

fn is_found_by_checks(rule: Rule) -> bool {
    (0..SEEDS).any(|seed| {
        schedule(
            seed,
            Variant::Extended,
            Subject::Broken(rule),
            &mut Trace::Dropped,
        )
        .inspect_err(|error| eprintln!("{rule:?}: seed {seed}: {error}"))
        .is_err()
    })
}

fn is_found_by_comparison(rule: Rule) -> bool {
    let frames = |seed, subject| {
        let mut trace = Trace::Text(String::new());
        schedule(seed, Variant::Extended, subject, &mut trace).unwrap();
        let Trace::Text(text) = trace else {
            unreachable!("the trace stays what it was")
        };
        text
    };
    (0..SEEDS).any(|seed| {
        let is_other = frames(seed, Subject::Naive) != frames(seed, Subject::Broken(rule));
        if is_other {
            eprintln!("{rule:?}: seed {seed}: other frames");
        }
        is_other
    })
}

#[test]
fn each_broken_rule_is_found() {
    for &rule in Rule::ALL {
        let is_found = match expected(rule) {
            FoundBy::Checks => is_found_by_checks(rule),
            FoundBy::Comparison => is_found_by_comparison(rule),
        };
        assert!(
            is_found,
            "{rule:?} is broken, and {:?} of {SEEDS} schedules did not find it",
            expected(rule)
        );
    }
}
