//! H8: layers that bound requests in time do not end a stream, over connections that bound delivery.

use std::time::Duration;

use axum::Router;
use krm_stream_protocol::WatchEvent;
use tokio::time::sleep;
use tower::ServiceBuilder;
use tower::timeout::TimeoutLayer;

use super::support::{Client, Host, Kind, config_map};

#[tokio::test(start_paused = true)]
async fn a_layer_that_bounds_requests_in_time_does_not_end_a_stream() {
    for kind in Kind::ALL {
        let mut host = Host::new();
        let service = ServiceBuilder::new()
            .layer(TimeoutLayer::new(Duration::from_secs(2)))
            .service(Router::new().route_service("/resource-stream/v1", host.gateway.clone()));
        let mut client = Client::connect(kind, service).await;
        let (mut stream, session) = tokio::join!(client.open(), async {
            host.script.next_open().await.accept_with([], "1")
        });
        assert_eq!(stream.types(2).await, ["reset", "synced"]);
        for version in 2..12 {
            sleep(Duration::from_secs(10)).await;
            session.send(WatchEvent::Added(config_map("a", version, &version.to_string())));
            stream.types(1).await;
        }
        assert_eq!(host.timeouts(), 0);
    }
}
