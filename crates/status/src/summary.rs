//! Many streams in a few figures, and what they say together.

use crate::{Blockage, Gate, Level, NotReady, StreamState};

/// The most names of pending streams that a summary holds: a status is read by people, and stored by etcd.
pub const PENDING_SAMPLE: usize = 5;

/// The reason while all streams are ready.
pub const ALL_STREAMS_READY: &str = "AllStreamsReady";
/// The reason while a stream is replaying and none is blocked.
pub const REPLAYING: &str = "Replaying";
/// The reason where there is nothing to stream.
pub const NO_RESOLVED_TYPES: &str = "NoResolvedTypes";

/// The state of many streams: how many are ready, replaying and blocked, and the names of a few that are not ready.
///
/// The worst stream decides what they say together, see [`gate`](Self::gate). Nothing to stream is converged; that is for
/// a specification that lists nothing. A stream that cannot be resolved is a stream, and
/// [blocked](crate::WatchStream::blocked).
///
/// ```
/// use krm_stream_status::{ReplayReason, StreamState, StreamSummary};
///
/// let streams = [
///     ("orders", StreamState::Streaming),
///     ("carts", StreamState::Replaying(ReplayReason::InitialReplay)),
/// ];
/// let summary = StreamSummary::of(streams.iter().map(|(name, state)| (*name, state)));
/// assert_eq!(summary.to_string(), "1/2");
/// assert_eq!(summary.gate().reason(), "Replaying");
/// assert_eq!(summary.pending_sample(), ["carts"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamSummary {
    ready: usize,
    replaying: usize,
    blocked: usize,
    pending_sample: Vec<String>,
    first_blocked: Option<(String, Blockage)>,
}

impl StreamSummary {
    /// Sums up streams, each with its name, in the order in which the names are to be listed.
    pub fn of<'a>(streams: impl IntoIterator<Item = (&'a str, &'a StreamState)>) -> Self {
        let mut summary = Self::default();
        let (mut blocked, mut replaying) = (Vec::new(), Vec::new());
        for (name, state) in streams {
            match state {
                StreamState::Streaming => summary.ready += 1,
                StreamState::Replaying(_) => {
                    summary.replaying += 1;
                    replaying.push(name);
                }
                StreamState::Blocked(blockage) => {
                    summary.blocked += 1;
                    blocked.push(name);
                    summary
                        .first_blocked
                        .get_or_insert_with(|| (name.to_owned(), blockage.clone()));
                }
            }
        }
        summary.pending_sample = blocked
            .into_iter()
            .chain(replaying)
            .take(PENDING_SAMPLE)
            .map(str::to_owned)
            .collect();
        summary
    }

    /// How many there are.
    pub const fn total(&self) -> usize {
        self.ready + self.replaying + self.blocked
    }

    /// How many are streaming.
    pub const fn ready(&self) -> usize {
        self.ready
    }

    /// How many read a snapshot.
    pub const fn replaying(&self) -> usize {
        self.replaying
    }

    /// How many do not go on for now.
    pub const fn blocked(&self) -> usize {
        self.blocked
    }

    /// At most [`PENDING_SAMPLE`] names of streams that are not ready, blocked ones first.
    pub fn pending_sample(&self) -> &[String] {
        &self.pending_sample
    }

    /// What the streams contribute to readiness: the worst of them.
    pub fn gate(&self) -> Gate {
        if let Some((name, blockage)) = &self.first_blocked {
            let message = format!("{name}: {}; {}", blockage.message(), self.in_words());
            return Gate::new(Level::Stalled, blockage.reason().as_str(), message);
        }
        if self.replaying > 0 {
            let message = format!("{}; waiting for {}", self.in_words(), self.pending_in_words());
            return Gate::new(Level::Progressing(NotReady::NotYet), REPLAYING, message);
        }
        if self.ready == 0 {
            return Gate::new(Level::Converged, NO_RESOLVED_TYPES, "there is nothing to stream");
        }
        Gate::new(Level::Converged, ALL_STREAMS_READY, self.in_words())
    }

    fn in_words(&self) -> String {
        format!("{} of {} streams are ready", self.ready, self.total())
    }

    fn pending_in_words(&self) -> String {
        let named = self.pending_sample.join(", ");
        match (self.replaying + self.blocked).saturating_sub(self.pending_sample.len()) {
            0 => named,
            further => format!("{named} and {further} more"),
        }
    }
}

impl std::fmt::Display for StreamSummary {
    /// `3/4`: three of four are ready.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ready, self.total())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BlockReason, ReplayReason};

    fn summary(streams: &[(&str, StreamState)]) -> StreamSummary {
        StreamSummary::of(streams.iter().map(|(name, state)| (*name, state)))
    }

    fn replaying() -> StreamState {
        StreamState::Replaying(ReplayReason::InitialReplay)
    }

    fn blocked(reason: BlockReason, message: &'static str) -> StreamState {
        StreamState::Blocked(Blockage::new(reason, message))
    }

    #[test]
    fn nothing_to_stream_is_converged() {
        let summary = summary(&[]);
        assert_eq!((summary.to_string().as_str(), summary.total()), ("0/0", 0));
        assert_eq!(summary.gate().level(), Level::Converged);
        assert_eq!(summary.gate().reason(), "NoResolvedTypes");
    }

    #[test]
    fn figures_and_words_tell_of_every_stream() {
        let summary = summary(&[
            ("a", StreamState::Streaming),
            ("b", replaying()),
            ("c", StreamState::Streaming),
        ]);
        assert_eq!(summary.to_string(), "2/3");
        assert_eq!(
            (
                summary.total(),
                summary.ready(),
                summary.replaying(),
                summary.blocked()
            ),
            (3, 2, 1, 0)
        );
        let gate = summary.gate();
        assert_eq!(gate.level(), Level::Progressing(NotReady::NotYet));
        assert_eq!(
            (gate.reason(), gate.message()),
            ("Replaying", "2 of 3 streams are ready; waiting for b")
        );
    }

    #[test]
    fn a_blocked_stream_outranks_any_number_of_replaying_ones() {
        let summary = summary(&[
            ("a", replaying()),
            ("b", blocked(BlockReason::WatchNotPermitted, "no")),
            ("c", blocked(BlockReason::WatchError, "away")),
            ("d", StreamState::Streaming),
        ]);
        let gate = summary.gate();
        assert_eq!(gate.level(), Level::Stalled);
        assert_eq!(
            (gate.reason(), gate.message()),
            ("WatchNotPermitted", "b: no; 1 of 4 streams are ready")
        );
        assert_eq!(summary.pending_sample(), ["b", "c", "a"]);
    }

    #[test]
    fn at_most_five_pending_streams_are_named_and_the_others_counted() {
        let names: Vec<String> = (1..=8).map(|number| format!("s{number}")).collect();
        let state = replaying();
        let summary = StreamSummary::of(names.iter().map(|name| (name.as_str(), &state)));
        assert_eq!(summary.pending_sample(), &names[..5]);
        assert!(
            summary
                .gate()
                .message()
                .ends_with("waiting for s1, s2, s3, s4, s5 and 3 more")
        );
    }

    #[test]
    fn all_streaming_is_converged() {
        let gate = summary(&[("a", StreamState::Streaming), ("b", StreamState::Streaming)]).gate();
        assert_eq!(
            (gate.level(), gate.reason()),
            (Level::Converged, "AllStreamsReady")
        );
        assert_eq!(gate.message(), "2 of 2 streams are ready");
    }
}
