//! A hyper server that reads a cluster with one identity of its own for all callers, and asks the API server about each
//! of them: one watch serves everyone who may see it.
//!
//! Callers are known by headers that an authenticating proxy in front of it sets. Try it without a cluster; it
//! prints these lines, with its address:
//!
//! ```text
//! cargo run -p krm-stream-http --example hyper_shared -- --simulator
//! curl -N -H 'X-Forwarded-User: ada' -H 'X-Forwarded-Groups: shop-viewers' \
//!   'http://127.0.0.1:8080/resource-stream/v1?version=v1&resource=configmaps&namespace=shop'
//! ```
//!
//! `--listen ADDRESS` is where it listens; `127.0.0.1:0` takes any free port. Without `--simulator` it uses whatever kubectl would use, or the pod's service account. That identity needs the right
//! to list and watch what is served, and to create `subjectaccessreviews` of the group `authorization.k8s.io`.

use std::convert::Infallible;
use std::error::Error;
use std::future::pending;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::Either;
use hyper::body::Incoming;
use krm_stream_http::{Connection, Gateway, ResolveError, StreamBody, prepare_socket, serve_connection};
use krm_stream_protocol::{
    BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ResourceRule, ScopePolicy, StreamError,
    Subject, Target,
};
use krm_stream_simulator::{Rule, Simulator, User};
use krm_stream_upstream_kube::kube::Config;
use krm_stream_upstream_kube::{KubeUpstream, SubjectAccessReviewAuthorizer};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::service_fn;
use tower_service::Service as _;

type BoxError = Box<dyn Error + Send + Sync>;

/// How long connections have once the end is asked for.
const GRACE: Duration = Duration::from_secs(10);

const USAGE: &str = "usage: hyper_shared [--listen ADDRESS] [--simulator]";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = listen_address(&mut arguments)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // It ends when it is dropped.
    let mut simulator = None;
    let config = match arguments[..] {
        [] => cluster_of_kubectl().await?,
        ["--simulator"] => config_of(simulator.insert(simulated_cluster().await?))?,
        _ => return Err(USAGE.into()),
    };
    let gateway = gateway(KubeUpstream::from_config(config)?)?;
    // Nothing but the proxy may reach this address: whoever can set these headers is whoever they like.
    let listener = listen(&address).await?;
    announce(listener.local_addr()?);
    serve(listener, gateway, ctrl_c()).await;
    Ok(())
}

async fn ctrl_c() {
    // Where signals cannot be had, the process ends by being killed.
    if tokio::signal::ctrl_c().await.is_err() {
        pending::<()>().await;
    }
}

#[expect(clippy::print_stdout, reason = "a program for people at a terminal")]
fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
    println!(
        "try  curl -N -H 'X-Forwarded-User: ada' -H 'X-Forwarded-Groups: shop-viewers' \
         'http://{address}/resource-stream/v1?version=v1&resource=configmaps&namespace=shop'"
    );
    println!("The same without the group, which alone may see that namespace, ends with FORBIDDEN.");
}

/// The address after `--listen`, which is taken out of the arguments.
fn listen_address(arguments: &mut Vec<String>) -> Result<String, BoxError> {
    let Some(at) = arguments.iter().position(|argument| argument == "--listen") else {
        return Ok("127.0.0.1:8080".to_owned());
    };
    let from_flag = arguments.split_off(at);
    let [_, address, rest @ ..] = &from_flag[..] else {
        return Err(USAGE.into());
    };
    arguments.extend_from_slice(rest);
    Ok(address.clone())
}

async fn listen(address: &str) -> Result<TcpListener, BoxError> {
    TcpListener::bind(address).await.map_err(|error| {
        format!("cannot listen on {address}: {error}; choose another address with --listen").into()
    })
}

async fn cluster_of_kubectl() -> Result<Config, BoxError> {
    Config::infer()
        .await
        .map_err(|error| format!("{error}; without a cluster, try --simulator").into())
}

/// The gateway: one identity reads, the API server decides who may see it.
pub(crate) fn gateway(cluster: KubeUpstream) -> Result<Gateway, BoxError> {
    let gateway = Gateway::builder()
        .resolver(|request: &Parts| forwarded(&request.headers))
        .scope_policy(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps").allow_label_selector(true))
                .allow(ResourceRule::cluster_scoped("", "nodes")),
        )
        .authorizer(SubjectAccessReviewAuthorizer::new(
            Target::default(),
            cluster.clone(),
        ))
        .client_for(OneIdentity(cluster))
        .projection_policy(GrantNamed::default())
        // A reader who takes less than 64 KiB in this time while there is something to take is cut.
        .write_timeout(Duration::from_secs(30))
        .build()?;
    Ok(gateway)
}

/// Serves connections, over HTTP/1.1 and HTTP/2, until the end is asked for. A loop of one's own is needed only where
/// `krm_stream_http::serve` does not do; this one accepts and leaves the rest to `serve_connection`.
pub(crate) async fn serve(listener: TcpListener, gateway: Gateway, end: impl Future<Output = ()>) {
    let (ending, ended) = watch::channel(());
    let mut connections = JoinSet::new();
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        let Ok((socket, _)) = accepted else {
            // A client that left before it was accepted, or no file descriptor for the moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        // A socket that refuses an option is slower, and serves.
        let _ = prepare_socket(&socket);
        let gateway = gateway.clone();
        let service = service_fn(move |request| answer(gateway.clone(), request));
        connections.spawn(until_it_is_over(serve_connection(socket, service), ended.clone()));
    }
    drop(listener);
    // Streams end by this alone: each is told to come back, at its own time.
    gateway.drain(Duration::from_secs(5));
    drop(ending);
    // Those whose readers take nothing are dropped with the set.
    let _ = timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await;
}

/// Serves a connection. When the end is asked for, what is under way finishes and nothing new begins: over HTTP/2 the client
/// gets GOAWAY.
async fn until_it_is_over(mut connection: Connection, mut ended: watch::Receiver<()>) {
    tokio::select! {
        // How a connection ends is of no interest: a browser that left, mostly.
        _ = &mut connection => return,
        _ = ended.changed() => connection.graceful_shutdown(),
    }
    let _ = connection.await;
}

pub(crate) type Body = Either<StreamBody, String>;

pub(crate) async fn answer(
    mut gateway: Gateway,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    match request.uri().path() {
        "/resource-stream/v1" => Ok(gateway.call(request).await?.map(Either::Left)),
        "/livez" => Ok(Response::new(Either::Right("ok".to_owned()))),
        _ => {
            let mut response = Response::new(Either::Right("no such page".to_owned()));
            *response.status_mut() = StatusCode::NOT_FOUND;
            Ok(response)
        }
    }
}

/// The caller as the proxy names it.
fn forwarded(headers: &HeaderMap) -> Result<Principal, ResolveError> {
    let text = |name| headers.get(name).map(|value| value.to_str()).transpose();
    let user = text("x-forwarded-user")?.ok_or("the proxy named no user")?;
    let groups = text("x-forwarded-groups")?.unwrap_or_default();
    let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty());
    Ok(Principal::new(groups.fold(Subject::new(user)?, Subject::group)))
}

/// The cluster with the gateway's own identity, whoever asks.
struct OneIdentity(KubeUpstream);

impl ClientFor for OneIdentity {
    fn client_for<'a>(
        &'a self,
        _target: &'a Target,
        _principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = Client {
            upstream: Arc::new(self.0.clone()),
            partition: Partition::shared("gateway"),
        };
        Box::pin(std::future::ready(Ok(client)))
    }
}

/// A cluster in this process: the gateway may read, and `shop-viewers` may see what is in `shop`.
pub(crate) async fn simulated_cluster() -> Result<Simulator, BoxError> {
    let simulator = Simulator::start().await?;
    simulator
        .access()
        .add_token("service-token", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["list", "watch"]),
        Rule::allow()
            .user("gateway")
            .verbs(["create"])
            .resource("authorization.k8s.io", "subjectaccessreviews"),
        Rule::allow()
            .group("shop-viewers")
            .verbs(["list", "watch"])
            .namespace("shop"),
    ]);
    let object =
        serde_json::json!({"metadata": {"name": "prices", "namespace": "shop"}, "data": {"tea": "2"}});
    simulator.create("configmaps", object)?;
    Ok(simulator)
}

/// How the gateway reaches the simulated cluster.
pub(crate) fn config_of(simulator: &Simulator) -> Result<Config, BoxError> {
    let mut config = Config::new(simulator.url().parse()?);
    config.auth_info.token = Some("service-token".to_owned().into());
    Ok(config)
}
