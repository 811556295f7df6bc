//! Faults on command: what to do to which requests.
//!
//! To add a fault: add a variant to [`Fault`], and its line to `Plan::include`, where all that a request will suffer
//! is collected. What a watch does in the middle is a [`StreamStep`], so most new faults of watches need neither.

mod fault;
mod matching;
mod plan;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use fault::{BodyFault, Ending, Fault, StreamAction, StreamPoint, StreamStep};
pub use matching::RequestMatch;
pub(crate) use plan::{Bookmarks, Instead, Plan, StreamingList};

use crate::request::ReceivedRequest;

/// The faults that wait for their requests.
///
/// They are tried in the order in which they were added; a request suffers at most one of each class
/// (instead of the answer, delay, body, stream, chunking, streaming lists, bookmarks), so the second of two queued
/// answers waits for the second request.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// use krm_stream_simulator::{Fault, RequestMatch, Simulator, Status, Verb};
///
/// let simulator = Simulator::start().await?;
/// // The second watch of ConfigMaps is refused, once.
/// let fault = simulator.faults().add(
///     RequestMatch::any().verb(Verb::Watch).resource("configmaps").skip(1),
///     Fault::Answer(Status::too_many_requests(7).to_answer()),
/// );
/// assert_eq!(simulator.faults().hits(fault), 0);
/// # Ok::<(), std::io::Error>(()) }).unwrap();
/// ```
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queued: Vec<Queued>,
    added: u64,
}

#[derive(Debug)]
struct Queued {
    id: FaultId,
    request: RequestMatch,
    fault: Fault,
    seen: u64,
    hits: u64,
}

/// Names a fault that was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FaultId(u64);

impl Faults {
    /// Queues a fault for the requests that match: once, unless [`RequestMatch::times`] or [`RequestMatch::always`] says otherwise.
    pub fn add(&self, request: RequestMatch, fault: Fault) -> FaultId {
        let mut state = self.state();
        state.added += 1;
        let id = FaultId(state.added);
        state.queued.push(Queued {
            id,
            request,
            fault,
            seen: 0,
            hits: 0,
        });
        id
    }

    /// Removes a fault. Open requests that suffer it already go on suffering. Returns whether it was there.
    pub fn remove(&self, id: FaultId) -> bool {
        let mut state = self.state();
        let before = state.queued.len();
        state.queued.retain(|queued| queued.id != id);
        before != state.queued.len()
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.state().queued.clear();
    }

    /// How many requests suffered this fault; 0 if it was removed.
    pub fn hits(&self, id: FaultId) -> u64 {
        self.state()
            .queued
            .iter()
            .find(|queued| queued.id == id)
            .map_or(0, |queued| queued.hits)
    }

    /// What this request will suffer.
    pub(crate) fn plan(&self, request: &ReceivedRequest) -> Plan {
        let mut plan = Plan::default();
        for queued in &mut self.state().queued {
            if queued.request.is_used_up(queued.hits) || !queued.request.matches(request) {
                continue;
            }
            queued.seen += 1;
            if queued.request.is_due(queued.seen) && plan.has_room_for(&queued.fault) {
                queued.hits += 1;
                plan.include(&queued.fault);
            }
        }
        plan
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
