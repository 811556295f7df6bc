//! The gateway, from the flags.

use std::num::NonZeroUsize;
use std::sync::Arc;

use krm_stream_http::{BuildError, Gateway, GatewayBuilder};
use krm_stream_protocol::{AllowAll, Diagnostics, GrantNamed, Observer, Ordering, ScopePolicy, SubjectError};
use krm_stream_upstream_kube::SubjectAccessReviewAuthorizer;

use crate::clients::Clients;
use crate::clusters::Clusters;
use crate::diagnostics::Log;
use crate::flags::{AccessFlags, Authorize, Flags, OrderingFlag, StreamFlags};
use crate::identity::{Identities, IdentityFlag};
use crate::networks::Network;

/// Why there is no gateway. The flags take nothing that it refuses, so none of these is told in their words.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GatewayError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("anonymous callers have no name")]
    Anonymous(#[from] SubjectError),
    #[error("no cluster is served")]
    NoCluster,
}

/// Builds the gateway. The flags have been checked against each other.
///
/// # Errors
/// [`GatewayError`] where the gateway refuses its settings.
pub(crate) fn build(
    flags: &Flags,
    clusters: &Clusters,
    scope_policy: ScopePolicy,
    observer: Arc<dyn Observer>,
) -> Result<Gateway, GatewayError> {
    let diagnostics: Arc<dyn Diagnostics> = Arc::new(Log);
    let builder = Gateway::builder()
        .resolver(identities(flags)?)
        .scope_policy(scope_policy)
        .client_for(Clients::new(clusters, &flags.access, &flags.declared))
        .projection_policy(granted(&flags.scopes.projection))
        .observer(observer)
        .diagnostics(Arc::clone(&diagnostics))
        .reauthorization_timeout(flags.access.reauthorization_timeout);
    let builder = bounded(streaming(builder, &flags.streams), flags);
    Ok(authorizing(builder, &flags.access, clusters, diagnostics)?.build()?)
}

fn streaming(builder: GatewayBuilder, streams: &StreamFlags) -> GatewayBuilder {
    builder
        .heartbeat_interval(streams.heartbeat_interval)
        .delivery_interval(streams.delivery_interval)
        .queue_depth(usize::try_from(streams.queue_depth).unwrap_or(usize::MAX))
        .linger(streams.linger)
        .ordering(match streams.ordering {
            OrderingFlag::Strict => Ordering::Strict,
            OrderingFlag::Lenient => Ordering::Lenient,
        })
}

/// What has no bound unless one is asked for.
fn bounded(mut builder: GatewayBuilder, flags: &Flags) -> GatewayBuilder {
    let streams = &flags.streams;
    if let Some(timeout) = flags.delivery.write_timeout() {
        builder = builder.write_timeout(timeout);
    }
    if let Some(interval) = flags.access.reauthorization_interval {
        builder = builder.reauthorization_interval(interval);
    }
    if let Some(most) = streams.max_streams {
        builder = builder.max_streams(most.get());
    }
    if let Some(most) = streams.max_streams_per_caller {
        builder = builder.max_streams_per_caller(most.get());
    }
    if let Some(most) = streams.max_snapshot_objects {
        builder = builder.max_snapshot_objects(most.get());
    }
    if let Some(most) = streams.max_snapshot_bytes {
        builder = builder.max_snapshot_bytes(most.get() as u64);
    }
    builder
}

fn identities(flags: &Flags) -> Result<Identities, SubjectError> {
    let access = &flags.access;
    match &access.identity {
        IdentityFlag::Anonymous => Identities::anonymous(),
        IdentityFlag::Header(user) => {
            // Beyond loopback a proxy was named; on loopback everyone who gets here is on this machine.
            let trusted = if access.trusted_proxy.is_empty() {
                Network::LOOPBACK.to_vec()
            } else {
                access.trusted_proxy.clone()
            };
            Ok(Identities::from_headers(
                user.clone(),
                access.groups_header.clone(),
                trusted,
            ))
        }
    }
}

fn granted(names: &[String]) -> GrantNamed {
    let mut names = names.iter().map(String::as_str);
    let first = names.next().map_or_else(GrantNamed::default, GrantNamed::new);
    names.fold(first, GrantNamed::and)
}

fn authorizing(
    builder: GatewayBuilder,
    access: &AccessFlags,
    clusters: &Clusters,
    diagnostics: Arc<dyn Diagnostics>,
) -> Result<GatewayBuilder, GatewayError> {
    Ok(match access.authorize {
        Authorize::AllowAll if access.acts_as_caller() => {
            builder.authorizer(AllowAll::where_upstream_acts_as_caller())
        }
        // On loopback, or accepted with a flag of that name.
        Authorize::AllowAll => builder.authorizer(AllowAll::dangerously_for_shared_feeds()),
        Authorize::SubjectAccessReview => builder.authorizer(reviewing(access, clusters, diagnostics)?),
    })
}

/// How many decisions are kept at most: a few hundred bytes each.
const MOST_DECISIONS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(9_999);

fn reviewing(
    access: &AccessFlags,
    clusters: &Clusters,
    diagnostics: Arc<dyn Diagnostics>,
) -> Result<SubjectAccessReviewAuthorizer, GatewayError> {
    let mut upstreams = clusters
        .iter()
        .map(|(target, cluster)| (target.clone(), cluster.upstream.clone()));
    let (target, upstream) = upstreams.next().ok_or(GatewayError::NoCluster)?;
    let first = SubjectAccessReviewAuthorizer::new(target, upstream)
        .with_diagnostics(diagnostics)
        .with_decision_cache(access.decision_cache.unwrap_or_default(), MOST_DECISIONS);
    Ok(upstreams.fold(first, |authorizer, (target, upstream)| {
        authorizer.with_target(target, upstream)
    }))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::allow;
    use crate::clusters::{Cluster, ClusterError};

    #[derive(Debug)]
    struct Nobody;

    impl Observer for Nobody {
        fn observe(&self, _: &krm_stream_protocol::Observation) {}
    }

    fn built(flags: &Flags) -> Result<Gateway, Box<dyn std::error::Error>> {
        let cluster: Result<_, ClusterError> = Cluster::at("http://127.0.0.1:1", "default", &flags.upstream);
        let clusters = Clusters::from([(krm_stream_protocol::Target::default(), cluster?)]);
        let policy = allow::policy(&flags.scopes, clusters.keys(), std::iter::empty());
        Ok(build(flags, &clusters, policy, Arc::new(Nobody))?)
    }

    #[tokio::test]
    async fn whatever_the_flags_take_the_gateway_takes_too() {
        let mut tried = 0;
        for argument in Flags::command().get_arguments() {
            let name = argument.get_long().unwrap();
            let is_number = ["DELETIONS", "STREAMS", "OBJECTS", "BYTES", "DURATION"]
                .iter()
                .any(|kind| {
                    argument
                        .get_value_names()
                        .is_some_and(|names| names.iter().any(|name| name == kind))
                });
            if !is_number {
                continue;
            }
            tried += 1;
            for value in [
                "0",
                "1ms",
                "1s",
                "1m",
                "24h",
                "1",
                "1024",
                "86400",
                "4294967295",
                "18446744073709551615",
            ] {
                let line = ["krm-stream-demo", &format!("--{name}"), value];
                if let Ok(flags) = Flags::try_parse_from(line) {
                    let built = built(&flags);
                    assert!(built.is_ok(), "--{name} {value}: {:?}", built.err());
                }
            }
        }
        assert!(tried >= 20, "only {tried} flags were tried");
    }
}
