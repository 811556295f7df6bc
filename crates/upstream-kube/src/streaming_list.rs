//! Remembers which API groups do not serve streaming lists.
//!
//! Aggregated API servers refuse them on current clusters. Asking again at each reconnect would cost a request every
//! time; never asking again would miss the upgrade.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::time::Instant;

/// How sure it is that a group does not serve streaming lists, hence how long it is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It named the parameters, or accepted them and reached no boundary: for a day.
    Certain,
    /// It refused in other words, and a list was then served: for an hour.
    Inferred,
}

impl Refusal {
    const fn remembered_for(self) -> Duration {
        match self {
            Self::Certain => Duration::from_hours(24),
            Self::Inferred => Duration::from_hours(1),
        }
    }
}

/// Which group-versions of one API server do not serve streaming lists, and until when that is believed. Only groups
/// that served a list are added, so their number is bounded by the API server's.
#[derive(Debug, Default)]
pub(crate) struct StreamingLists {
    refused_until: Mutex<HashMap<Box<str>, Instant>>,
}

impl StreamingLists {
    /// Whether a streaming list of this group-version is worth asking for.
    pub(crate) fn are_served(&self, api_version: &str, now: Instant) -> bool {
        let mut refused = self.refused_until.lock().unwrap_or_else(PoisonError::into_inner);
        match refused.get(api_version) {
            None => true,
            Some(until) if now < *until => false,
            Some(_) => {
                refused.remove(api_version);
                true
            }
        }
    }

    /// Remembers a refusal.
    pub(crate) fn refused(&self, api_version: &str, refusal: Refusal, now: Instant) {
        tracing::info!(
            api_version,
            "the api server serves no streaming list: falling back to list and watch"
        );
        self.refused_until
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(api_version.into(), now + refusal.remembered_for());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refusal_is_kept_for_its_group_version_alone_and_for_a_day() {
        let lists = StreamingLists::default();
        let now = Instant::now();
        assert!(lists.are_served("example.org/v1", now));
        lists.refused("example.org/v1", Refusal::Certain, now);
        assert!(!lists.are_served("example.org/v1", now + Duration::from_hours(23)));
        assert!(lists.are_served("example.org/v2", now));
        assert!(lists.are_served("example.org/v1", now + Duration::from_hours(24)));
    }

    #[tokio::test]
    async fn an_inferred_refusal_is_kept_for_an_hour() {
        let lists = StreamingLists::default();
        let now = Instant::now();
        lists.refused("v1", Refusal::Inferred, now);
        assert!(!lists.are_served("v1", now + Duration::from_secs(3599)));
        assert!(lists.are_served("v1", now + Duration::from_hours(1)));
    }
}
