//! From an upstream's event to a change that a feed may keep.

use std::sync::Arc;

use krm_stream_protocol::{Object, StreamError, WatchEvent};

use super::Driver;
use crate::feed::Held;
use crate::feed::state::Change;

impl Driver {
    /// Projects a change: once for all streams. Nothing that was not projected is kept.
    pub(super) fn project(&self, event: WatchEvent) -> Result<Option<Change>, StreamError> {
        let (object, is_deletion) = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            WatchEvent::Bookmark { .. } | WatchEvent::SnapshotRestarted | WatchEvent::Unknown => {
                return Ok(None);
            }
        };
        let scope = &self.feed.key().scope;
        let version = object.resource_version().cloned();
        let Some(identity) = object.identity().map(Arc::clone) else {
            return Ok(None);
        };
        if !scope.admits(&identity) {
            let error = StreamError::internal("the API server sent an object outside the scope");
            self.diagnosing.report("watching", Some(scope), &error);
            return Err(error);
        }
        if is_deletion {
            return Ok(Some(Change::Delete { identity, version }));
        }
        Ok(Some(Change::Upsert {
            identity,
            version,
            held: self.hold(&object)?,
        }))
    }

    fn hold(&self, object: &Object) -> Result<Held, StreamError> {
        let scope = &self.feed.key().scope;
        let projected = self
            .feed
            .projection()
            .project(scope, object, &self.digest_key)
            .map_err(|error| {
                self.diagnosing
                    .report("projecting an object", Some(scope), &error);
                StreamError::internal("the API server sent something that the gateway cannot read")
            })?;
        Ok(if self.feed.key().is_isolated() {
            Held::until_taken(projected)
        } else {
            Held::kept(projected)
        })
    }
}
