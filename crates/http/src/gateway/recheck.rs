//! Asking again whether open streams may go on.

use std::sync::Arc;

use krm_stream_protocol::{Principal, ProjectionName, Scope, StreamError};
use tokio::time::Instant;

use super::check::Bound;
use super::streams::{News, Request};
use super::{Gateway, Host};

impl Gateway {
    /// Has every stream checked that `filter` names, at once: after a logout, say, or a change of groups. Returns how many
    /// these are.
    ///
    /// From now on nothing is delivered to such a stream before its caller is found to be allowed by a check that was asked
    /// after this call. That holds for streams that are still opening, and for checks that are in flight: what they are
    /// answered no longer counts. A stream whose caller is denied, whose check is not answered within
    /// `reauthorization_timeout` of this call, or whose projection would be another one, ends; the others go on. Where a stream
    /// comes to hear that it is allowed only after that time, since its reader took nothing meanwhile, it is checked anew. One
    /// that ends anyway, as by [`drain`](Self::drain), is not asked about: what it has not handed out is dropped.
    ///
    /// The authorizer and the projection policy are asked, with the principal that the resolver gave when the stream began: a
    /// login that ended must be known to one of them.
    ///
    /// `filter` is called for each stream whose caller is known, without any lock held.
    pub fn recheck(&self, filter: impl Fn(&Principal, &Scope) -> bool) -> usize {
        let (trigger, members) = self.0.streams.begin_recheck();
        let mut count = 0;
        for member in members {
            let is_meant = member
                .request()
                .is_some_and(|request| filter(&request.principal, &request.scope));
            if is_meant {
                member.tell(News::Recheck(trigger));
                count += 1;
            }
        }
        count
    }
}

impl Host {
    /// Checks a stream that is open or opening, since there is a reason to at `trigger`. Resolves to the projection that is
    /// granted now: whether that is the stream's is known where its place at a feed is.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(crate) async fn check_again(
        self: Arc<Self>,
        request: Arc<Request>,
        trigger: Instant,
        deadline: Instant,
    ) -> Result<ProjectionName, StreamError> {
        self.ask(&request, Instant::now(), Some(trigger), Bound::Until(deadline))
            .await?;
        let select = self.select_projection(&request);
        match tokio::time::timeout_at(deadline, select).await {
            Ok(granted) => granted,
            Err(_elapsed) => Err(self.not_in_time("selecting the projection", self.spread_retry())),
        }
    }
}
