//! The stream's span in traces: its number, which is also that of the feed that it opened, and nothing of its objects.

use tracing::Span;

/// What a stream does is told within this.
#[derive(Debug)]
pub(super) struct StreamSpan(
    /// Boxed, and none where nobody listens: an idle stream is to be small.
    Option<Box<Span>>,
);

impl StreamSpan {
    pub(super) fn new(number: Option<u64>) -> Self {
        let span = tracing::debug_span!("stream", stream = number);
        Self((!span.is_disabled()).then(|| Box::new(span)))
    }

    /// The span itself, to be put back after what it is entered for.
    pub(super) fn take(&mut self) -> Self {
        Self(self.0.take())
    }

    pub(super) fn in_scope<R>(&self, step: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(span) => span.in_scope(step),
            None => step(),
        }
    }
}
