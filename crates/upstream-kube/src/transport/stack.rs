//! Builds the stack from a `kube::Config`: TLS, proxy and authentication are kube's.

use std::error::Error;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::Connection;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::Config;
use kube::client::ConfigExt as _;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder, ServiceExt as _};

use super::connector::{Bounded, tcp};
use super::{Body, BoxError, HttpService, TokenFile, Transport, describe};
use crate::settings::Settings;

/// Why no stack can be built from a configuration. It never holds a credential.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StackError {
    #[error("{0}")]
    Credential(&'static str),
    #[error("the TLS settings cannot be used")]
    Tls(#[source] Box<kube::Error>),
    #[error("the proxy's scheme is not one of http, https and socks5")]
    ProxyScheme,
    #[error("a proxy with a user name in its URL is not supported: use one that needs none")]
    ProxyCredentials,
}

/// The transport that `config` describes.
pub(crate) fn from_config(config: &Config, settings: &Settings) -> Result<Transport, StackError> {
    ensure_crypto_provider();
    let tcp = tcp(settings.connect_timeout);
    let service = match &config.proxy_url {
        None => service(tcp, config, settings)?,
        Some(proxy) if proxy.authority().is_some_and(|at| at.as_str().contains('@')) => {
            return Err(StackError::ProxyCredentials);
        }
        Some(proxy) => match proxy.scheme_str() {
            Some("socks5") => service(SocksV5::new(proxy.clone(), tcp), config, settings)?,
            Some("http") => service(Tunnel::new(proxy.clone(), tcp), config, settings)?,
            Some("https") => {
                let tls = config
                    .rustls_https_connector_with_connector(tcp)
                    .map_err(tls_error)?;
                service(Tunnel::new(proxy.clone(), tls), config, settings)?
            }
            Some(_) | None => return Err(StackError::ProxyScheme),
        },
    };
    let headers: HeaderMap = config.headers.iter().cloned().collect();
    let token_file = token_file(config).map(TokenFile::new);
    Ok(Transport::new(
        service,
        token_file,
        headers,
        settings.open_timeout,
    ))
}

/// The token file, where it is what kube would use: an auth provider, a password and an inline token outrank it.
fn token_file(config: &Config) -> Option<&str> {
    let auth = &config.auth_info;
    let outranked = auth.auth_provider.is_some()
        || (auth.username.is_some() && auth.password.is_some())
        || auth.token.is_some();
    auth.token_file.as_deref().filter(|_| !outranked)
}

fn service<C>(connector: C, config: &Config, settings: &Settings) -> Result<HttpService, StackError>
where
    C: Service<Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Error + Send + Sync + 'static,
{
    let connector = config
        .rustls_https_connector_with_connector(connector)
        .map_err(tls_error)?;
    let client: Client<_, Full<Bytes>> = legacy::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .build(Bounded::new(connector, settings.connect_timeout));
    let authentication = match token_file(config) {
        Some(_) => None,
        None => config.auth_layer().map_err(credential_error)?,
    };
    Ok(BoxCloneSyncService::new(
        ServiceBuilder::new()
            .map_request(|request: Request<Bytes>| request.map(Full::new))
            .map_response(|response: Response<_>| response.map(boxed))
            .layer(config.base_uri_layer())
            .option_layer(authentication)
            .map_err(BoxError::from)
            .service(client)
            .map_err(BoxError::from),
    ))
}

fn boxed(body: hyper::body::Incoming) -> Body {
    body.map_err(BoxError::from).boxed_unsync()
}

fn credential_error(error: kube::Error) -> StackError {
    match error {
        kube::Error::Auth(error) => StackError::Credential(describe(&error)),
        _ => StackError::Credential("the credential could not be obtained"),
    }
}

fn tls_error(error: kube::Error) -> StackError {
    StackError::Tls(Box::new(error))
}

/// rustls picks its provider by itself only where exactly one is compiled in. A host that has chosen one keeps it.
fn ensure_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // The only error is that another thread was faster.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Takes requests to a client that the host built.
pub(crate) fn from_client(client: kube::Client, settings: &Settings) -> Transport {
    let service = BoxCloneSyncService::new(tower::service_fn(move |request: Request<Bytes>| {
        let client = client.clone();
        async move {
            let response = client.send(request.map(kube::client::Body::from)).await?;
            Ok::<_, BoxError>(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
    }));
    Transport::new(service, None, HeaderMap::new(), settings.open_timeout)
}
