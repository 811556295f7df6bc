//! A feed that has fallen silent.

use krm_stream_protocol::{Identity, Partition, Principal, Subject};

use super::*;
use crate::sweep::{Frame, Sink, Sweep};

struct Everything;

impl Sink<Arc<Identity>, Held> for Everything {
    fn has_room(&self) -> bool {
        true
    }

    fn push(&mut self, _: Frame<'_, Arc<Identity>, Held>) {}
}

fn feed() -> Feed {
    let key = FeedKey {
        partition: Partition::per_caller().key(&Principal::new(Subject::new("ada").unwrap()), 1),
        scope: Scope::builder("v1", "configmaps").build().unwrap(),
        projection: Projection::full().name().clone(),
    };
    Feed::new(key, Projection::full(), &FeedSettings::default())
}

#[tokio::test(start_paused = true)]
async fn deletions_that_all_have_taken_in_are_forgotten_although_no_change_follows() {
    let feed = feed();
    let tidy = feed.keep_tidy();
    let silence = async {
        let mut sweep = Sweep::new();
        sweep.begin_cycle(&feed.read().changelog, &mut Everything);
        feed.change(|state| {
            for (uid, version) in [("a", "1"), ("b", "2"), ("c", "3")] {
                state.apply(state::tests::upsert(uid, version, "x"));
            }
            state.reach_boundary();
            ((), Visible::Yes)
        });
        let _ = sweep.poll(&feed.read().changelog, &mut Everything);
        feed.change(|state| {
            state.apply(state::tests::delete("a", "4"));
            state.apply(state::tests::delete("b", "5"));
            ((), Visible::Yes)
        });
        sleep(3 * JOINS_CEASE).await;
        let tombstones = || feed.read().changelog.size().tombstones;
        assert_eq!(tombstones(), 2, "one stream has not taken them in");
        let _ = sweep.poll(&feed.read().changelog, &mut Everything);
        sleep(2 * JOINS_CEASE).await;
        assert_eq!(tombstones(), 0);
        sweep.leave(&feed.read().changelog);
    };
    tokio::select! {
        () = tidy => {}
        () = silence => {}
    }
}
