//! The election by random delays: of requests, of answers, and of answers that come too late to be waited for.

use proptest::prelude::*;

use super::*;

/// A request on its way, and what becomes of it. All times are in ticks of a quarter of a second.
struct Sent {
    by: usize,
    request: Option<LeaseRequest>,
    arrives: u64,
    answer: Option<LeaseAnswer>,
    is_answered: u64,
    is_given_up: u64,
}

fn at(tick: u64) -> Moment {
    Moment::after_origin(Duration::from_millis(250 * tick))
}

/// As long as a driver waits: half of the renew deadline.
const PATIENCE: u64 = 20;

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_two_hold_it_at_once_and_somebody_does_once_requests_are_answered(
        delays in prop::collection::vec((0..40_u64, 0..40_u64, any::<bool>()), 20..200),
        releases in prop::collection::vec(100..800_u64, 0..4),
    ) {
        let mut candidates: Vec<Election> = (0..3)
            .map(|seed| Election::new(LeaseSettings::new("n", "l", format!("pod-{seed}")), at(0), seed))
            .collect();
        let (mut store, mut out) = (Store::default(), Vec::<Sent>::new());
        let mut waits = [false; 3];
        let mut delays = delays.into_iter();
        for tick in 0..1600_u64 {
            let now = at(tick);
            // What arrives is carried out, also if nobody waits for its answer any more.
            for sent in &mut out {
                if sent.arrives <= tick && let Some(request) = sent.request.take() {
                    sent.answer = Some(store.answer(request));
                }
            }
            let mut asked = Vec::new();
            out.retain_mut(|sent| {
                let candidate = &mut candidates[sent.by];
                let answer = match sent.answer.take() {
                    Some(answer) if sent.is_answered <= tick && sent.is_given_up > tick => answer,
                    held => {
                        sent.answer = held;
                        if sent.is_given_up == tick {
                            waits[sent.by] = false;
                            let _ = candidate.answered(now, &wall(), LeaseAnswer::Failed);
                        }
                        return sent.request.is_some() || sent.is_given_up > tick;
                    }
                };
                waits[sent.by] = false;
                asked.extend(candidate.answered(now, &wall(), answer).map(|request| (sent.by, request)));
                false
            });
            if releases.contains(&tick) {
                for (by, candidate) in candidates.iter_mut().enumerate().filter(|(by, _)| !waits[*by]) {
                    if let Some(request) = candidate.release(now, &wall()) {
                        // Nobody waits for its answer: the process is gone, and another one of its name begins.
                        *candidate =
                            Election::new(LeaseSettings::new("n", "l", format!("pod-{by}-{tick}")), now, tick);
                        let late = delays.next().map_or(0, |(late, _, _)| late);
                        out.push(Sent {
                            by, request: Some(request), arrives: tick + late, answer: None,
                            is_answered: u64::MAX, is_given_up: 0,
                        });
                    }
                }
            }
            for (by, candidate) in candidates.iter_mut().enumerate() {
                if !waits[by] && candidate.next_due() <= now && !asked.iter().any(|(asks, _)| *asks == by) {
                    asked.push((by, candidate.begin(now, &wall())));
                }
            }
            for (by, request) in asked {
                waits[by] = true;
                let (there, back) = match delays.next() {
                    Some((there, back, true)) => (there, back),
                    Some((_, _, false)) | None => (0, 1),
                };
                out.push(Sent {
                    by, request: Some(request), arrives: tick + there, answer: None,
                    is_answered: tick + there + back, is_given_up: tick + PATIENCE,
                });
            }
            let holders = candidates.iter().filter(|candidate| candidate.is_holder(now)).count();
            prop_assert!(holders <= 1, "{holders} hold it at {now:?}: {candidates:?}");
        }
        let holders = candidates.iter().filter(|candidate| candidate.is_holder(at(1600))).count();
        prop_assert_eq!(holders, 1);
    }
}
