//! Who is woken, once, and who is waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use super::*;

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (Arc::clone(&count), Waker::from(count))
}

impl Count {
    fn take(&self) -> usize {
        self.0.swap(0, Ordering::Relaxed)
    }
}

#[test]
fn each_who_waits_is_woken_once_and_who_left_is_not() {
    let wakers = Wakers::default();
    let streams: Vec<_> = (0..50).map(|_| (wakers.enter(), counting())).collect();
    for (place, (_, waker)) in &streams {
        wakers.register(*place, waker);
        wakers.register(*place, waker);
    }
    for (place, _) in streams.iter().step_by(3) {
        wakers.leave(*place);
    }
    wakers.wake_all();
    wakers.wake_all();
    for (n, (_, (count, _))) in streams.iter().enumerate() {
        assert_eq!(count.take(), usize::from(n % 3 != 0), "stream {n}");
    }
    for (place, (_, waker)) in streams.iter().skip(1).step_by(3) {
        wakers.register(*place, waker);
    }
    let late = wakers.enter();
    let (count, waker) = counting();
    wakers.register(late, &waker);
    wakers.wake_all();
    assert_eq!(count.take(), 1);
    for (n, (_, (count, _))) in streams.iter().enumerate() {
        assert_eq!(count.take(), usize::from(n % 3 == 1), "stream {n}");
    }
}

#[test]
fn places_are_used_again_and_given_back_and_nothing_piles_up_on_a_quiet_feed() {
    let wakers = Wakers::default();
    let (_, waker) = counting();
    let stays = wakers.enter();
    for _ in 0..1_000 {
        let place = wakers.enter();
        wakers.register(place, &waker);
        wakers.leave(place);
    }
    assert!(wakers.table().places.len() == 2 && wakers.table().waiting.is_empty());
    wakers.leave(stays);
    assert_eq!(wakers.table().places.capacity(), 0);
}

#[test]
fn all_are_settled_when_each_one_woken_has_looked_or_left_and_who_is_stuck_is_waited_for_once() {
    let wakers = Wakers::default();
    let (settled, settling) = counting();
    let mut cx = Context::from_waker(&settling);
    let (_, waker) = counting();
    let places: Vec<_> = (0..3).map(|_| wakers.enter()).collect();
    for place in &places {
        wakers.register(*place, &waker);
    }
    assert!(wakers.poll_settled(&mut cx).is_ready());
    wakers.wake_all();
    assert!(wakers.poll_settled(&mut cx).is_pending());
    wakers.register(places[0], &waker);
    wakers.leave(places[1]);
    assert_eq!(settled.take(), 0);
    wakers.register(places[2], &waker);
    assert_eq!(settled.take(), 1);
    assert!(wakers.poll_settled(&mut cx).is_ready());

    wakers.wake_all();
    wakers.register(places[0], &waker);
    assert!(wakers.poll_settled(&mut cx).is_pending());
    wakers.give_up_unsettled();
    wakers.wake_all();
    assert!(
        wakers.poll_settled(&mut cx).is_pending(),
        "the other one is awaited"
    );
    wakers.register(places[0], &waker);
    assert!(
        wakers.poll_settled(&mut cx).is_ready(),
        "the one that is stuck is not"
    );
    wakers.register(places[2], &waker);
    wakers.wake_all();
    wakers.register(places[0], &waker);
    assert!(
        wakers.poll_settled(&mut cx).is_pending(),
        "it came back, and is awaited again"
    );
}

#[test]
fn who_rests_is_woken_by_no_change_and_awaited_only_once_roused() {
    let wakers = Wakers::default();
    let (settled, settling) = counting();
    let mut cx = Context::from_waker(&settling);
    let (count, waker) = counting();
    let place = wakers.enter();
    assert!(!wakers.rest(place, &waker), "it has not looked");
    wakers.register(place, &waker);
    assert!(wakers.rest(place, &waker));
    wakers.wake_all();
    assert!(wakers.rest(place, &waker), "it still rests");
    assert!(wakers.poll_settled(&mut cx).is_ready());
    assert_eq!(count.take(), 0);

    wakers.rouse();
    assert_eq!(count.take(), 1);
    assert!(wakers.poll_settled(&mut cx).is_pending());
    assert!(!wakers.rest(place, &waker), "it has to look");
    wakers.rouse();
    assert_eq!(count.take(), 0, "once");
    wakers.register(place, &waker);
    assert_eq!(settled.take(), 1);
    assert!(wakers.rest(place, &waker), "anew");

    wakers.register(place, &waker);
    wakers.wake_all();
    assert_eq!(count.take(), 1, "its rest is over");
}

#[test]
fn who_was_woken_since_its_look_may_not_rest_and_is_still_awaited() {
    let wakers = Wakers::default();
    let mut cx = Context::from_waker(Waker::noop());
    let (_, waker) = counting();
    let place = wakers.enter();
    wakers.register(place, &waker);
    wakers.wake_all();
    assert!(!wakers.rest(place, &waker));
    assert!(wakers.poll_settled(&mut cx).is_pending());
    wakers.give_up_unsettled();
    assert!(!wakers.rest(place, &waker), "given up, it has missed something");
    wakers.register(place, &waker);
    assert!(wakers.rest(place, &waker));
}

#[test]
fn who_leaves_while_it_rests_or_as_it_is_roused_is_awaited_by_nobody() {
    let wakers = Wakers::default();
    let (settled, settling) = counting();
    let mut cx = Context::from_waker(&settling);
    let (count, waker) = counting();
    let places: Vec<_> = (0..3).map(|_| wakers.enter()).collect();
    for place in &places {
        wakers.register(*place, &waker);
        assert!(wakers.rest(*place, &waker));
    }
    wakers.leave(places[0]);
    wakers.rouse();
    assert_eq!(count.take(), 2);
    wakers.leave(places[1]);
    assert!(wakers.poll_settled(&mut cx).is_pending());
    wakers.leave(places[2]);
    assert_eq!(settled.take(), 1);
    assert!(wakers.poll_settled(&mut cx).is_ready());
    assert_eq!(wakers.table().places.capacity(), 0);
}
