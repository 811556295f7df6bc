//! Why a connection cannot be used.

/// The connection of a request cannot bound delivery, and the gateway has a write timeout. The request is aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransportRejected {
    /// The request came without a word of its connection.
    #[error(
        "the request's connection cannot bound delivery: serve it with krm_stream_http::serve or serve_connection, \
         keep the extensions of the request in every middleware, or build the gateway without write_timeout"
    )]
    Capability,
    /// The connection's transport is not guarded.
    #[error(
        "the request's connection has no guard on its transport: wrap the transport with ConnectionGuard::io before hyper gets it"
    )]
    Io,
    /// The connection's streams are not guarded.
    #[error(
        "the request's connection has no guard on its HTTP/2 streams: give hyper ConnectionGuard::executor, one guard for each connection"
    )]
    Executor,
}
