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
    /// `reauthorization_timeout` of this call, or whose projection would be another one, ends; the others go on.
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
    /// Checks a stream that is open, since there is a reason to at `trigger`.
    ///
    /// # Errors
    /// What the stream ends with.
    pub(crate) async fn check_again(
        self: Arc<Self>,
        request: Arc<Request>,
        granted: Option<ProjectionName>,
        trigger: Instant,
        deadline: Instant,
    ) -> Result<(), StreamError> {
        self.ask(&request, Instant::now(), Some(trigger), Bound::Until(deadline))
            .await?;
        let select = self.select_projection(&request);
        let Ok(now_granted) = tokio::time::timeout_at(deadline, select).await else {
            return Err(self.not_in_time("selecting the projection", self.spread_retry()));
        };
        match (granted, now_granted?) {
            (Some(granted), now_granted) if granted != now_granted => Err(StreamError::internal_passing(
                "another view of this is granted to you now; connect again",
                None,
            )),
            (Some(_) | None, _) => Ok(()),
        }
    }
}
