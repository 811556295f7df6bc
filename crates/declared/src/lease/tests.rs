//! The election, by a clock that only the test moves.

mod properties;

use super::*;

fn secs(seconds: u64) -> Moment {
    Moment::after_origin(Duration::from_secs(seconds))
}

fn wall() -> MicroTime {
    MicroTime("2026-08-01T09:30:00Z".parse().unwrap())
}

fn candidate(identity: &str) -> Election {
    Election::new(LeaseSettings::new("gateway", "declared", identity), secs(0), 7)
}

/// The API server's part: one Lease.
#[derive(Debug, Default)]
struct Store {
    stored: Option<LeaseSpec>,
    version: u64,
}

impl Store {
    fn answer(&mut self, request: LeaseRequest) -> LeaseAnswer {
        let version = ResourceVersion::from(self.version.to_string().as_str());
        match (request, &self.stored) {
            (LeaseRequest::Read | LeaseRequest::Replace { .. }, None) => LeaseAnswer::NotFound,
            (LeaseRequest::Read, Some(spec)) => LeaseAnswer::Found {
                spec: spec.clone(),
                version,
            },
            (LeaseRequest::Create(_), Some(_)) => LeaseAnswer::Conflict,
            (LeaseRequest::Replace { version: named, .. }, Some(_)) if named != version => {
                LeaseAnswer::Conflict
            }
            (LeaseRequest::Create(spec) | LeaseRequest::Replace { spec, .. }, _) => {
                self.stored = Some(spec);
                self.version += 1;
                LeaseAnswer::Stored {
                    version: self.version.to_string().as_str().into(),
                }
            }
        }
    }

    /// One attempt, with all that follows at once.
    fn attempt(&mut self, election: &mut Election, now: Moment) {
        let mut request = Some(election.begin(now, &wall()));
        while let Some(asked) = request {
            let answer = self.answer(asked);
            request = election.answered(now, &wall(), answer);
        }
    }

    fn spec(&self) -> &LeaseSpec {
        self.stored.as_ref().unwrap()
    }
}

#[test]
fn a_lease_that_is_not_there_is_created_and_then_renewed() {
    let (mut store, mut one) = (Store::default(), candidate("one"));
    store.attempt(&mut one, secs(0));
    assert!(one.is_holder(secs(0)));
    assert_eq!(store.spec().lease_transitions, Some(0));
    assert_eq!(one.next_due(), secs(2));
    let before = store.version;
    store.attempt(&mut one, secs(2));
    assert_eq!(store.version, before + 1, "renewed by one write, without reading");
    assert_eq!(one.holds_until(), Some(secs(12)));
}

#[test]
fn another_one_waits_for_as_long_as_the_lease_lasts_from_when_it_saw_its_last_change() {
    let (mut store, mut one, mut two) = (Store::default(), candidate("one"), candidate("two"));
    store.attempt(&mut one, secs(0));
    for now in [1, 3, 5] {
        store.attempt(&mut two, secs(now));
        assert!(!two.is_holder(secs(now)));
    }
    store.attempt(&mut one, secs(6));
    // The last change is seen at 7, whatever time the Lease names.
    for now in [7, 12, 17, 21] {
        store.attempt(&mut two, secs(now));
        assert!(!two.is_holder(secs(now)), "at {now}");
    }
    assert!(
        !one.is_holder(secs(16)),
        "it gave up before anybody may take over"
    );
    store.attempt(&mut two, secs(22));
    assert!(two.is_holder(secs(22)));
    assert_eq!(store.spec().lease_transitions, Some(1));

    // The former holder comes back, finds that it was replaced, and waits.
    store.attempt(&mut one, secs(23));
    assert!(!one.is_holder(secs(23)));
    assert_eq!(store.spec().holder_identity.as_deref(), Some("two"));
}

#[test]
fn a_lease_that_was_given_up_is_taken_at_once() {
    let (mut store, mut one, mut two) = (Store::default(), candidate("one"), candidate("two"));
    store.attempt(&mut one, secs(0));
    store.attempt(&mut two, secs(1));
    let release = one.release(secs(3), &wall()).unwrap();
    assert!(matches!(store.answer(release), LeaseAnswer::Stored { .. }));
    assert!(!one.is_holder(secs(3)));
    assert_eq!(store.spec().holder_identity, None);
    store.attempt(&mut two, secs(3));
    assert!(two.is_holder(secs(3)));
    assert!(
        one.release(secs(4), &wall()).is_none(),
        "what is not held is not given up"
    );
}

#[test]
fn a_holder_whose_renewals_fail_holds_on_until_the_deadline_and_no_longer() {
    let (mut store, mut one) = (Store::default(), candidate("one"));
    store.attempt(&mut one, secs(0));
    for now in [2, 4, 6, 8] {
        let _ = one.begin(secs(now), &wall());
        assert_eq!(one.answered(secs(now), &wall(), LeaseAnswer::Failed), None);
        assert!(one.is_holder(secs(now)));
    }
    assert!(!one.is_holder(secs(10)));
    assert_eq!(one.begin(secs(10), &wall()), LeaseRequest::Read);
}

#[test]
fn a_renewal_that_was_stored_but_not_answered_costs_one_conflict_and_not_the_lease() {
    let (mut store, mut one) = (Store::default(), candidate("one"));
    store.attempt(&mut one, secs(0));
    let renewal = one.begin(secs(2), &wall());
    let _ = store.answer(renewal);
    assert_eq!(one.answered(secs(2), &wall(), LeaseAnswer::Failed), None);
    store.attempt(&mut one, secs(4));
    assert!(one.is_holder(secs(4)));
    store.attempt(&mut one, secs(6));
    assert_eq!(one.holds_until(), Some(secs(16)));
    assert_eq!(
        store.spec().lease_transitions,
        Some(0),
        "it changed hands at no time"
    );
}

#[test]
fn a_lease_that_has_no_place_to_be_in_is_asked_for_at_the_usual_pace() {
    let mut one = candidate("one");
    assert_eq!(one.begin(secs(0), &wall()), LeaseRequest::Read);
    let create = one.answered(secs(0), &wall(), LeaseAnswer::NotFound);
    assert!(matches!(create, Some(LeaseRequest::Create(_))), "{create:?}");
    // The namespace is not there either.
    assert_eq!(one.answered(secs(0), &wall(), LeaseAnswer::NotFound), None);
    assert!(!one.is_holder(secs(0)) && one.next_due() >= secs(2));
    // Nor is one that was removed, with its namespace, from whoever held it.
    let (mut store, mut two) = (Store::default(), candidate("two"));
    store.attempt(&mut two, secs(0));
    assert!(matches!(
        two.begin(secs(2), &wall()),
        LeaseRequest::Replace { .. }
    ));
    let create = two.answered(secs(2), &wall(), LeaseAnswer::NotFound);
    assert!(matches!(create, Some(LeaseRequest::Create(_))), "{create:?}");
    assert_eq!(two.answered(secs(2), &wall(), LeaseAnswer::NotFound), None);
}

#[test]
fn of_two_that_want_the_same_one_wins() {
    let (mut store, mut one, mut two) = (Store::default(), candidate("one"), candidate("two"));
    let (ask_one, ask_two) = (one.begin(secs(0), &wall()), two.begin(secs(0), &wall()));
    let (found_one, found_two) = (store.answer(ask_one), store.answer(ask_two));
    let create_one = one.answered(secs(0), &wall(), found_one).unwrap();
    let create_two = two.answered(secs(0), &wall(), found_two).unwrap();
    let (first, second) = (store.answer(create_one), store.answer(create_two));
    assert_eq!(one.answered(secs(0), &wall(), first), None);
    assert_eq!(two.answered(secs(0), &wall(), second), None);
    assert!(one.is_holder(secs(0)) && !two.is_holder(secs(0)));
}

#[test]
fn candidates_spread_their_attempts() {
    let mut attempts = std::collections::BTreeSet::new();
    for seed in 0..20 {
        let (mut store, mut one) = (Store::default(), candidate("one"));
        store.attempt(&mut one, secs(0));
        let mut other = Election::new(LeaseSettings::new("gateway", "declared", "other"), secs(0), seed);
        store.attempt(&mut other, secs(0));
        let next = other.next_due();
        assert!(next >= secs(2) && next <= secs(5), "{next:?}");
        attempts.insert(next);
    }
    assert!(attempts.len() > 5, "{attempts:?}");
}

#[test]
fn settings_that_could_not_work_are_refused() {
    let settings =
        |namespace: &str, name: &str, identity: &str| LeaseSettings::new(namespace, name, identity);
    assert_eq!(settings("gateway", "declared", "pod-1").check(), Ok(()));
    assert_eq!(settings("a-1", "a.b-2.c", "pod-1").check(), Ok(()));
    let (long, too_long) = ("a".repeat(63), "a".repeat(64));
    assert_eq!(settings(&long, &too_long, "pod-1").check(), Ok(()));
    for namespace in ["", "a/b", "-a", "a-", "A", "a.b", &*too_long] {
        let refusal = Err(LeaseSettingsError::Name("namespace"));
        assert_eq!(
            settings(namespace, "declared", "x").check(),
            refusal,
            "{namespace}"
        );
    }
    let too_long = "a".repeat(254);
    for name in [
        "", "a/b", "-a", "a-", "a.", ".a", "a..b", "a.-b", "a-.b", &*too_long,
    ] {
        let refusal = Err(LeaseSettingsError::Name("name"));
        assert_eq!(settings("gateway", name, "x").check(), refusal, "{name}");
    }
    assert_eq!(settings("a", "b", "").check(), Err(LeaseSettingsError::Identity));
    let second = Duration::from_secs(1);
    let too_short = settings("a", "b", "c").times(2 * second, 2 * second, second);
    assert_eq!(too_short.check(), Err(LeaseSettingsError::Times));
    // A Lease has whole seconds: others would read one of 1 s here, and take it before it is given up.
    let tenth = Duration::from_millis(100);
    let in_part = settings("a", "b", "c").times(19 * tenth, 15 * tenth, 5 * tenth);
    assert_eq!(in_part.check(), Err(LeaseSettingsError::Times));
}
