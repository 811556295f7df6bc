//! The Events that are to be recorded, in the order of the writes that they tell of.

use std::collections::{BTreeMap, VecDeque};

use krm_stream_protocol::Identity;
use krm_stream_status::EventPlan;

/// How many Events of one object may wait where an API server does not take them; the oldest are dropped.
const WAITING_EVENTS: usize = 32;

/// Events of an object are recorded one after the other, and wait for nothing else. A status waits for no Event.
#[derive(Debug, Default)]
pub(super) struct Telling {
    /// By uid, those of which one is being recorded.
    waiting: BTreeMap<Box<str>, VecDeque<(Identity, EventPlan)>>,
}

impl Telling {
    /// An Event is to be recorded. Returns it, if that can be done now.
    pub(super) fn tell(&mut self, object: Identity, event: EventPlan) -> Option<(Identity, EventPlan)> {
        let Some(waiting) = self.waiting.get_mut(&object.uid) else {
            self.waiting.insert(object.uid.clone(), VecDeque::new());
            return Some((object, event));
        };
        if waiting.len() == WAITING_EVENTS
            && let Some((object, event)) = waiting.pop_front()
        {
            tracing::warn!(
                object = &*object.name,
                reason = event.reason(),
                "an event is given up"
            );
        }
        waiting.push_back((object, event));
        None
    }

    /// One was recorded, or given up. Returns the next one of this object.
    pub(super) fn told(&mut self, uid: &str) -> Option<(Identity, EventPlan)> {
        let next = self.waiting.get_mut(uid)?.pop_front();
        if next.is_none() {
            self.waiting.remove(uid);
        }
        next
    }
}
