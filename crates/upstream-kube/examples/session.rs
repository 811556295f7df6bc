//! Prints one session on the cluster of your kubeconfig: names and versions, never contents.
//!
//! `cargo run -p krm-stream-upstream-kube --example session 'version=v1&resource=configmaps&namespace=default'`

#![expect(clippy::print_stdout, reason = "an example speaks on its standard output")]

use std::error::Error;

use krm_stream_protocol::{ScopeRequest, SessionItem, Start, Upstream as _};
use krm_stream_upstream_kube::{KubeUpstream, kube};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let query = std::env::args()
        .nth(1)
        .ok_or("give a scope: 'version=v1&resource=configmaps&namespace=default'")?;
    let (scope, _) = ScopeRequest::parse(&query)?.into_parts();
    let upstream = KubeUpstream::from_config(kube::Config::infer().await?)?;
    let mut session = upstream.open(&scope, Start::Fresh).await?;
    loop {
        match std::future::poll_fn(|cx| session.poll_next(cx)).await {
            SessionItem::Event(event) => println!("{event:?}"),
            SessionItem::End(end) => {
                println!("{end:?}");
                return Ok(());
            }
        }
    }
}
