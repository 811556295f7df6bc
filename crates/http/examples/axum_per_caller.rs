//! An axum service that streams a namespace of a cluster to whoever is signed in, as that user: Kubernetes' own RBAC
//! decides who sees what.
//!
//! Try it without a cluster; it prints these lines, with its address:
//!
//! ```text
//! cargo run -p krm-stream-http --example axum_per_caller -- --simulator
//! token=$(curl -s -d ada http://127.0.0.1:8080/login)
//! curl -N -H "Authorization: Bearer $token" \
//!   'http://127.0.0.1:8080/resource-stream/v1?version=v1&resource=configmaps&namespace=shop'
//! ```
//!
//! `--listen ADDRESS` is where it listens; `127.0.0.1:0` takes any free port. Without `--simulator` it uses `--kubeconfig PATH`, or else whatever kubectl would use, or the pod's service account.
//! That identity needs the right to impersonate users and groups, and no other; each caller needs `list` and `watch`:
//!
//! ```text
//! kubectl -n shop create role viewer --verb=list,watch --resource=configmaps
//! kubectl -n shop create rolebinding viewer --role=viewer --group=shop-viewers
//! ```

use std::collections::HashMap;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, COOKIE, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use krm_stream_http::{Gateway, ResolveError, Resolver, serve};
use krm_stream_protocol::{
    AllowAll, BoxFuture, Client, ClientFor, GrantNamed, Partition, Principal, ResourceRule, ScopePolicy,
    StreamError, Subject, Target,
};
use krm_stream_simulator::{Rule, Simulator, User};
use krm_stream_upstream_kube::KubeUpstream;
use krm_stream_upstream_kube::kube::Config;
use krm_stream_upstream_kube::kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::net::TcpListener;

type BoxError = Box<dyn Error + Send + Sync>;

const USAGE: &str = "usage: axum_per_caller [--listen ADDRESS] [--simulator | --kubeconfig PATH]";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let address = listen_address(&mut arguments)?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // It ends when it is dropped.
    let mut simulator = None;
    let config = match arguments[..] {
        [] => cluster_of_kubectl().await?,
        ["--kubeconfig", path] => {
            let kubeconfig = Kubeconfig::read_from(path)?;
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?
        }
        ["--simulator"] => config_of(simulator.insert(simulated_cluster().await?))?,
        _ => return Err(USAGE.into()),
    };
    let (app, gateway) = app(KubeUpstream::from_config(config)?)?;
    let listener = listen(&address).await?;
    announce(listener.local_addr()?);
    // In place of axum's own `serve`: it bounds delivery, over HTTP/1.1 and HTTP/2.
    serve(listener, app)
        .with_graceful_shutdown(drained(gateway), Duration::from_secs(10))
        .await;
    Ok(())
}

/// Waits for Ctrl-C, and then tells all streams to end and to come back, each at its own time.
async fn drained(gateway: Gateway) {
    // Where signals cannot be had, the process ends by being killed.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    gateway.drain(Duration::from_secs(5));
}

#[expect(clippy::print_stdout, reason = "a program for people at a terminal")]
fn announce(address: SocketAddr) {
    println!("listening on http://{address}");
    println!("try  token=$(curl -s -d ada http://{address}/login)");
    println!(
        "     curl -N -H \"Authorization: Bearer $token\" \
         'http://{address}/resource-stream/v1?version=v1&resource=configmaps&namespace=shop'"
    );
    println!("The same as `bob`, who may see nothing in that namespace, ends with FORBIDDEN.");
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

/// The service: its own routes, and the stream beside them. The gateway comes along, to be drained.
pub(crate) fn app(cluster: KubeUpstream) -> Result<(Router, Gateway), BoxError> {
    let logins = Logins::default();
    let gateway = Gateway::builder()
        .resolver(logins.clone())
        // A caller may ask for these, one namespace at a time.
        .scope_policy(
            ScopePolicy::deny_all()
                .allow_target(Target::default())
                .allow(ResourceRule::namespaced("", "configmaps"))
                .allow(ResourceRule::namespaced("", "secrets"))
                .allow(ResourceRule::namespaced("apps", "deployments")),
        )
        // The API server is asked as the caller, so nobody else has to decide.
        .authorizer(AllowAll::where_upstream_acts_as_caller())
        .client_for(AsCaller(cluster))
        // Values of Secrets are withheld, whoever asks.
        .projection_policy(GrantNamed::default())
        // A reader who takes less than 64 KiB in this time while there is something to take is cut.
        .write_timeout(Duration::from_secs(30))
        .build()?;
    let router = Router::new()
        .route("/login", post(login))
        .route("/me", get(me))
        .with_state(logins)
        .route_service("/resource-stream/v1", gateway.clone());
    Ok((router, gateway))
}

/// The cluster as whoever asks. The streams of one caller share what they read, those of two never do.
struct AsCaller(KubeUpstream);

impl ClientFor for AsCaller {
    fn client_for<'a>(
        &'a self,
        _target: &'a Target,
        principal: &'a Principal,
    ) -> BoxFuture<'a, Result<Client, StreamError>> {
        let client = match self.0.acting_as(principal.subject()) {
            Ok(upstream) => Ok(Client {
                upstream: Arc::new(upstream),
                partition: Partition::per_caller(),
            }),
            Err(_) => Err(StreamError::unauthenticated(
                "your login has characters that the cluster cannot take",
            )),
        };
        Box::pin(std::future::ready(client))
    }
}

/// Who is signed in, by token. A real service has a store of sessions, or tokens that it can verify.
#[derive(Clone, Default)]
struct Logins(Arc<Mutex<HashMap<String, Subject>>>);

impl Resolver for Logins {
    fn resolve<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<Principal, ResolveError>> {
        let principal = self
            .subject(&request.headers)
            .map(Principal::new)
            .ok_or_else(|| StreamError::unauthenticated("sign in first").into());
        Box::pin(std::future::ready(principal))
    }
}

impl Logins {
    /// A browser's `EventSource` can send a cookie and no other header of ours; programs send a bearer token.
    fn subject(&self, headers: &HeaderMap) -> Option<Subject> {
        let texts = |name| {
            headers
                .get_all(name)
                .into_iter()
                .filter_map(|value| value.to_str().ok())
        };
        let bearer = texts(AUTHORIZATION).find_map(|value| value.strip_prefix("Bearer "));
        // There are other cookies in the header, and over HTTP/2 maybe several such headers.
        let cookie = texts(COOKIE)
            .flat_map(|cookies| cookies.split("; "))
            .find_map(|cookie| cookie.strip_prefix("login="));
        self.table().get(bearer.or(cookie)?).cloned()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<String, Subject>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The people of this example, who need no password.
fn person(name: &str) -> Option<Subject> {
    let subject = Subject::new(name).ok()?;
    match name {
        "ada" => Some(subject.group("shop-viewers").group("staff")),
        "bob" => Some(subject.group("staff")),
        _ => None,
    }
}

async fn login(State(logins): State<Logins>, name: String) -> Result<impl IntoResponse, StatusCode> {
    let subject = person(&name).ok_or(StatusCode::UNAUTHORIZED)?;
    let mut random = [0; 16];
    getrandom::fill(&mut random).map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    let token = format!("{:032x}", u128::from_ne_bytes(random));
    logins.table().insert(token.clone(), subject);
    let cookie = format!("login={token}; HttpOnly; SameSite=Strict; Path=/");
    Ok(([(SET_COOKIE, cookie)], token))
}

async fn me(State(logins): State<Logins>, headers: HeaderMap) -> Result<String, StatusCode> {
    let subject = logins.subject(&headers).ok_or(StatusCode::UNAUTHORIZED)?;
    Ok(subject.user_name().to_owned())
}

/// A cluster in this process: `shop-viewers` may see what is in `shop`, and the service may act as anyone.
pub(crate) async fn simulated_cluster() -> Result<Simulator, BoxError> {
    let simulator = Simulator::start().await?;
    simulator
        .access()
        .add_token("service-token", User::new("gateway"));
    simulator.access().set_rules([
        Rule::allow().user("gateway").verbs(["impersonate"]),
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

/// How the service reaches the simulated cluster.
pub(crate) fn config_of(simulator: &Simulator) -> Result<Config, BoxError> {
    let mut config = Config::new(simulator.url().parse()?);
    config.auth_info.token = Some("service-token".to_owned().into());
    Ok(config)
}
