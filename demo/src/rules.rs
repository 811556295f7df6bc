//! What flags may not be combined: above all what would serve a cluster to a network by accident.

use krm_stream_projection::Projections;
use krm_stream_protocol::ProjectionName;

use crate::flags::{Authorize, Flags, Sharing};
use crate::identity::IdentityFlag;

/// Flags that cannot be used together, and what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RuleError {
    #[error(
        "--listen {0} is reachable from other machines, and everyone there could read what the scopes allow: add \
         --authorize subject-access-review, listen on 127.0.0.1, or accept it with --dangerously-allow-all"
    )]
    AllowAllBeyondLoopback(std::net::SocketAddr),
    #[error(
        "--listen {0} is reachable from other machines, and callers would be anonymous: add --identity header:NAME with \
         --trusted-proxy, listen on 127.0.0.1, or accept it with --dangerously-anonymous"
    )]
    AnonymousBeyondLoopback(std::net::SocketAddr),
    #[error(
        "--identity {0} beyond loopback needs to know whom to believe: add --trusted-proxy with the proxy's address"
    )]
    NoTrustedProxy(IdentityFlag),
    #[error("--listen {0} has no name of its own: say with --allow-host by which host name it is called")]
    NoHost(std::net::SocketAddr),
    #[error(
        "--sharing per-caller needs to know its callers: add --identity header:NAME, or use --sharing shared"
    )]
    PerCallerAnonymous,
    #[error(
        "--any-resource leaves access to the API server, which must then be asked as the caller: add --sharing per-caller \
         and --identity header:NAME, or name the resources with --allow"
    )]
    AnyResource,
    #[error("--projection {name}: there is no such projection; there are {known}")]
    UnknownProjection {
        /// What was asked for.
        name: String,
        /// All there are.
        known: String,
    },
    #[error("{0} means something with --identity header:NAME only")]
    HeadersOnly(&'static str),
    #[error(
        "--reauthorization-interval needs a --write-timeout other than 0: a reader that takes nothing would keep what it was sent \
         for as long as it likes, whatever a check says. Leave --write-timeout out (it is 30s then), or leave \
         --reauthorization-interval out"
    )]
    ChecksWithoutWriteTimeout,
    #[error("--decision-cache means something with --authorize subject-access-review only")]
    DecisionsWithoutReviews,
    #[error(
        "--simulator-listen {0}: the simulator lets anyone write, so it listens on loopback only, as 127.0.0.1:0"
    )]
    SimulatorBeyondLoopback(std::net::SocketAddr),
    #[error(
        "--declared-streams needs a cluster to read them from: add --kubeconfig, --context or --in-cluster"
    )]
    DeclaredWithoutCluster,
    #[error(
        "--declared-streams are read from the default cluster, and with --target alone there is none: name it with --context"
    )]
    DeclaredWithoutDefault,
    #[error(
        "--declared-streams are read as the gateway itself, which must not read whatever is asked for: name the resources with \
         --allow in place of --any-resource"
    )]
    DeclaredAnyResource,
    #[error("{0} means something with --declared-streams only")]
    DeclaredOnly(&'static str),
    #[error("--declared-partition must not be empty: leave it out, or name it")]
    NoPartition,
    #[error(
        "--lease-namespace and --lease-name name one Lease: give both, or neither if there is one replica"
    )]
    HalfALease,
    #[error("--target {0} is given twice")]
    TargetTwice(String),
}

/// Checks the flags against each other.
///
/// # Errors
/// The first rule that they break.
pub(crate) fn check(flags: &Flags) -> Result<(), RuleError> {
    let listen = flags.server.listen;
    if !flags.server.is_loopback() {
        beyond_loopback(flags, listen)?;
    }
    callers(flags)?;
    declared(flags)?;
    let projections = Projections::default();
    for name in &flags.scopes.projection {
        if projections.get(&ProjectionName::new(name.as_str())).is_none() {
            let known: Vec<&str> = projections.names().map(ProjectionName::as_str).collect();
            return Err(RuleError::UnknownProjection {
                name: name.clone(),
                known: known.join(", "),
            });
        }
    }
    let simulator = flags.simulator.listen;
    if !simulator.ip().is_loopback() {
        return Err(RuleError::SimulatorBeyondLoopback(simulator));
    }
    let targets = &flags.clusters.target;
    for (position, target) in targets.iter().enumerate() {
        if targets[..position]
            .iter()
            .any(|earlier| earlier.name == target.name)
        {
            return Err(RuleError::TargetTwice(target.name.to_string()));
        }
    }
    Ok(())
}

fn beyond_loopback(flags: &Flags, listen: std::net::SocketAddr) -> Result<(), RuleError> {
    let access = &flags.access;
    match access.identity {
        IdentityFlag::Anonymous if !access.dangerously_anonymous => {
            return Err(RuleError::AnonymousBeyondLoopback(listen));
        }
        IdentityFlag::Header(_) if access.trusted_proxy.is_empty() => {
            return Err(RuleError::NoTrustedProxy(access.identity.clone()));
        }
        IdentityFlag::Anonymous | IdentityFlag::Header(_) => {}
    }
    match access.authorize {
        Authorize::AllowAll if !access.dangerously_allow_all => {
            return Err(RuleError::AllowAllBeyondLoopback(listen));
        }
        Authorize::AllowAll | Authorize::SubjectAccessReview => {}
    }
    if listen.ip().is_unspecified() && flags.server.allow_host.is_empty() {
        return Err(RuleError::NoHost(listen));
    }
    Ok(())
}

fn callers(flags: &Flags) -> Result<(), RuleError> {
    let access = &flags.access;
    if access.identity == IdentityFlag::Anonymous {
        match access.sharing {
            Sharing::PerCaller => return Err(RuleError::PerCallerAnonymous),
            Sharing::Shared | Sharing::Isolated => {}
        }
        if access.groups_header.is_some() {
            return Err(RuleError::HeadersOnly("--groups-header"));
        }
        if !access.trusted_proxy.is_empty() {
            return Err(RuleError::HeadersOnly("--trusted-proxy"));
        }
    }
    if access.reauthorization_interval.is_some() && flags.delivery.write_timeout().is_none() {
        return Err(RuleError::ChecksWithoutWriteTimeout);
    }
    if access.decision_cache.is_some() && access.authorize == Authorize::AllowAll {
        return Err(RuleError::DecisionsWithoutReviews);
    }
    if flags.scopes.any_resource && !access.acts_as_caller() {
        return Err(RuleError::AnyResource);
    }
    Ok(())
}

fn declared(flags: &Flags) -> Result<(), RuleError> {
    let declared = &flags.declared;
    let given = [
        ("--declared-partition", &declared.partition),
        ("--lease-namespace", &declared.lease_namespace),
        ("--lease-name", &declared.lease_name),
    ];
    if !declared.is_on {
        let without_effect = given.iter().find(|(_, value)| value.is_some());
        return without_effect.map_or(Ok(()), |(name, _)| Err(RuleError::DeclaredOnly(name)));
    }
    if flags.clusters.is_simulated() {
        return Err(RuleError::DeclaredWithoutCluster);
    }
    if !flags.clusters.has_default() {
        return Err(RuleError::DeclaredWithoutDefault);
    }
    if flags.scopes.any_resource {
        return Err(RuleError::DeclaredAnyResource);
    }
    if declared.partition.as_deref() == Some("") {
        return Err(RuleError::NoPartition);
    }
    if declared.lease_namespace.is_some() != declared.lease_name.is_some() {
        return Err(RuleError::HalfALease);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    fn checked(arguments: &[&str]) -> Result<(), RuleError> {
        check(&Flags::try_parse_from([&["krm-stream-demo"], arguments].concat()).unwrap())
    }

    const EVERYWHERE: &str = "0.0.0.0:8080";
    const PROXIED: [&str; 4] = [
        "--identity",
        "header:X-Remote-User",
        "--trusted-proxy",
        "10.0.0.1",
    ];
    const REVIEWED: [&str; 2] = ["--authorize", "subject-access-review"];

    fn beyond(further: &[&[&str]]) -> Result<(), RuleError> {
        checked(
            &[
                &["--listen", EVERYWHERE, "--allow-host", "krm.example.com"],
                further.concat().as_slice(),
            ]
            .concat(),
        )
    }

    #[test]
    fn on_loopback_nothing_has_to_be_said() {
        assert_eq!(checked(&[]), Ok(()));
        assert_eq!(checked(&["--listen", "[::1]:0"]), Ok(()));
        assert_eq!(
            checked(&["--listen", "127.0.0.2:0", "--sharing", "isolated"]),
            Ok(())
        );
        assert_eq!(
            checked(&["--identity", "header:X-User", "--sharing", "per-caller"]),
            Ok(())
        );
    }

    #[test]
    fn beyond_loopback_allow_all_and_anonymous_each_need_a_word() {
        assert!(matches!(beyond(&[]), Err(RuleError::AnonymousBeyondLoopback(_))));
        assert!(matches!(
            beyond(&[&["--dangerously-anonymous"]]),
            Err(RuleError::AllowAllBeyondLoopback(_))
        ));
        assert!(matches!(
            beyond(&[&["--dangerously-allow-all"]]),
            Err(RuleError::AnonymousBeyondLoopback(_))
        ));
        assert!(matches!(
            beyond(&[&PROXIED]),
            Err(RuleError::AllowAllBeyondLoopback(_))
        ));
        assert_eq!(beyond(&[&PROXIED, &REVIEWED]), Ok(()));
        assert_eq!(beyond(&[&REVIEWED, &["--dangerously-anonymous"]]), Ok(()));
        assert_eq!(
            beyond(&[&["--dangerously-anonymous", "--dangerously-allow-all"]]),
            Ok(())
        );
        assert!(matches!(
            checked(&["--listen", "[::]:80"]),
            Err(RuleError::AnonymousBeyondLoopback(_))
        ));
    }

    #[test]
    fn beyond_loopback_headers_need_a_proxy_and_the_gateway_a_name() {
        assert!(matches!(
            beyond(&[&PROXIED[..2], &REVIEWED]),
            Err(RuleError::NoTrustedProxy(_))
        ));
        let nameless = [&["--listen", EVERYWHERE], &PROXIED[..], &REVIEWED].concat();
        assert!(matches!(checked(&nameless), Err(RuleError::NoHost(_))));
        let addressed = [&["--listen", "192.0.2.7:80"], &PROXIED[..], &REVIEWED].concat();
        assert_eq!(checked(&addressed), Ok(()));
    }

    #[test]
    fn callers_must_be_known_where_the_upstream_acts_as_them() {
        assert_eq!(
            checked(&["--sharing", "per-caller"]),
            Err(RuleError::PerCallerAnonymous)
        );
        assert_eq!(checked(&["--any-resource"]), Err(RuleError::AnyResource));
        assert_eq!(
            checked(&["--any-resource", "--identity", "header:X-User"]),
            Err(RuleError::AnyResource)
        );
        assert_eq!(
            checked(&[
                "--any-resource",
                "--identity",
                "header:X-User",
                "--sharing",
                "per-caller"
            ]),
            Ok(())
        );
    }

    #[test]
    fn flags_without_effect_are_mistakes() {
        assert!(matches!(
            checked(&["--trusted-proxy", "10.0.0.1"]),
            Err(RuleError::HeadersOnly(_))
        ));
        assert!(matches!(
            checked(&["--groups-header", "X-Groups"]),
            Err(RuleError::HeadersOnly(_))
        ));
        assert!(matches!(
            checked(&["--projection", "krm-fulll/v1"]),
            Err(RuleError::UnknownProjection { .. })
        ));
        assert_eq!(checked(&["--projection", "krm-raw/v1"]), Ok(()));
        assert!(matches!(
            checked(&["--simulator-listen", "0.0.0.0:0"]),
            Err(RuleError::SimulatorBeyondLoopback(_))
        ));
        assert!(matches!(
            checked(&["--target", "a=b", "--target", "a=c"]),
            Err(RuleError::TargetTwice(_))
        ));
    }

    #[test]
    fn decisions_are_kept_of_reviews_only() {
        let cached = ["--decision-cache", "10s"];
        assert_eq!(checked(&cached), Err(RuleError::DecisionsWithoutReviews));
        assert_eq!(checked(&[cached, REVIEWED].concat()), Ok(()));
    }

    #[test]
    fn checks_of_open_streams_need_bounded_delivery() {
        let checked_by_time = ["--reauthorization-interval", "5m"];
        let told = checked(&[&checked_by_time[..], &["--write-timeout", "0"]].concat());
        assert_eq!(told, Err(RuleError::ChecksWithoutWriteTimeout));
        assert_eq!(checked(&checked_by_time), Ok(()));
        assert_eq!(checked(&["--write-timeout", "0"]), Ok(()));
    }

    #[test]
    fn declared_streams_need_a_cluster_and_resources_by_name() {
        let on = "--declared-streams";
        assert_eq!(checked(&[on]), Err(RuleError::DeclaredWithoutCluster));
        assert_eq!(checked(&[on, "--in-cluster"]), Ok(()));
        assert_eq!(
            checked(&[on, "--target", "a=b"]),
            Err(RuleError::DeclaredWithoutDefault)
        );
        assert_eq!(checked(&[on, "--target", "a=b", "--context", "c"]), Ok(()));
        let any = [
            "--any-resource",
            "--identity",
            "header:X-User",
            "--sharing",
            "per-caller",
        ];
        assert_eq!(
            checked(&[&[on, "--in-cluster"], &any[..]].concat()),
            Err(RuleError::DeclaredAnyResource)
        );
    }

    #[test]
    fn a_lease_has_a_namespace_and_a_name_and_is_for_declared_streams() {
        let on = ["--declared-streams", "--in-cluster"];
        let (namespace, name) = (["--lease-namespace", "krm-stream"], ["--lease-name", "declared"]);
        assert_eq!(checked(&[on, namespace].concat()), Err(RuleError::HalfALease));
        assert_eq!(checked(&[on, name].concat()), Err(RuleError::HalfALease));
        assert_eq!(checked(&[on, namespace, name].concat()), Ok(()));
        assert_eq!(
            checked(&[namespace, name].concat()),
            Err(RuleError::DeclaredOnly("--lease-namespace"))
        );
        let partition = ["--declared-partition", ""];
        assert_eq!(
            checked(&partition),
            Err(RuleError::DeclaredOnly("--declared-partition"))
        );
        assert_eq!(checked(&[on, partition].concat()), Err(RuleError::NoPartition));
    }
}
