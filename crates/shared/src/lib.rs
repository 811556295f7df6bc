//! Feeds: one upstream watch, any number of readers.
//!
//! A feed keeps the latest projected state of one scope in a [`Changelog`]; each stream reads it through a [`Sweep`] of its
//! own. Both are state machines without I/O, without a clock and without a lock of a runtime: the caller applies upstream's
//! events to the changelog, and polls a sweep whenever its connection can take more.
//!
//! ```
//! use krm_stream_shared::{Changelog, Frame, Identified, Sink, Spelling, Sweep};
//!
//! #[derive(Clone)]
//! struct Uid(String);
//! impl Identified for Uid {
//!     fn uid(&self) -> &str {
//!         &self.0
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Lines(Vec<String>);
//! impl Sink<Uid, &'static str> for Lines {
//!     fn has_room(&self) -> bool {
//!         self.0.len() < 100
//!     }
//!     fn push(&mut self, frame: Frame<'_, Uid, &'static str>) {
//!         self.0.push(match frame {
//!             Frame::Reset => "reset".to_owned(),
//!             Frame::Upsert { spelling: Spelling::Added, payload, .. } => format!("added {payload}"),
//!             Frame::Upsert { spelling: Spelling::Modified, payload, .. } => format!("modified {payload}"),
//!             Frame::Deleted { identity } => format!("deleted {}", identity.uid()),
//!             Frame::Synced => "synced".to_owned(),
//!             Frame::Resync(reason) => format!("resync {reason:?}"),
//!             Frame::SlowConsumer => "slow".to_owned(),
//!         });
//!     }
//! }
//!
//! let mut changelog = Changelog::new(256);
//! changelog.upsert(Uid("a".into()), 1_u64, "first");
//! changelog.reach_boundary();
//!
//! let (mut sweep, mut out) = (Sweep::new(), Lines::default());
//! sweep.begin_cycle(&changelog, &mut out);
//! let _ = sweep.poll(&changelog, &mut out);
//! changelog.upsert(Uid("a".into()), 2, "second");
//! changelog.upsert(Uid("b".into()), 3, "third");
//! changelog.delete("a", 4);
//! let _ = sweep.poll(&changelog, &mut out);
//! assert_eq!(out.0, ["reset", "added first", "synced", "deleted a", "added third"]);
//! sweep.leave(&changelog);
//! ```

mod backoff;
mod changelog;
mod feed;
mod feeds;
mod reader;
mod settings;
mod sweep;
mod sync;

pub use changelog::{Changelog, Identified, Object, Point, Retired, Size, Snapshot};
pub use feed::{FeedReport, FeedReports, Keep, Keeper};
pub use feeds::{Feeds, Join, Subscription};
pub use reader::{NextCycle, Outbox, Reader, Step};
pub use settings::FeedSettings;
pub use sweep::{Frame, Progress, ResyncReason, Sink, Spelling, Sweep};

/// The README's example compiles.
#[cfg(doctest)]
mod documentation {
    #[doc = include_str!("../README.md")]
    struct Readme;
}
