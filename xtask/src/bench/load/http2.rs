//! Many streams on few connections: cleartext HTTP/2 with prior knowledge.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{BenchError, Keeping, Reader, Source};

/// How many streams a connection has, as browsers and proxies allow.
pub(crate) const STREAMS_PER_CONNECTION: usize = 100;

/// Streams that were opened, each read by a task; dropped, they are closed.
#[derive(Debug)]
pub(crate) struct Http2Streams {
    runtime: Runtime,
    streams: JoinSet<String>,
    synced: Arc<AtomicUsize>,
}

impl Http2Streams {
    /// Opens `count` streams and waits until each has seen `synced`.
    pub(crate) fn open(source: &Source, count: usize, limit: Duration) -> Result<Self, BenchError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(BenchError::io("start a runtime"))?;
        let mut this = Self {
            runtime,
            streams: JoinSet::new(),
            synced: Arc::default(),
        };
        let Self {
            runtime,
            streams,
            synced,
        } = &mut this;
        let opening = async {
            let mut left = count;
            while left > 0 {
                let here = left.min(STREAMS_PER_CONNECTION);
                left -= here;
                connect(source, here, streams, synced).await?;
                // Not more at a time than the streams of one connection.
                while synced.load(Ordering::Relaxed) < count - left {
                    tokio::select! {
                        Some(ended) = streams.join_next() => {
                            let why = ended.unwrap_or_else(|error| error.to_string());
                            return Err(BenchError::ReaderEnded(why));
                        }
                        () = tokio::time::sleep(Duration::from_millis(5)) => {}
                    }
                }
            }
            Ok(())
        };
        runtime
            .block_on(async { timeout(limit, opening).await })
            .map_err(|_| BenchError::Late(format!("{count} HTTP/2 streams did not all reach `synced`")))??;
        Ok(this)
    }

    /// Reads on for so long.
    pub(crate) fn run(&mut self, time: Duration) {
        // The timer is made within the runtime that it belongs to.
        self.runtime.block_on(async { tokio::time::sleep(time).await });
    }
}

async fn connect(
    source: &Source,
    count: usize,
    streams: &mut JoinSet<String>,
    synced: &Arc<AtomicUsize>,
) -> Result<(), BenchError> {
    let tcp = tokio::net::TcpStream::connect(source.address)
        .await
        .map_err(BenchError::io("connect"))?;
    let ended = |error: hyper::Error| BenchError::ReaderEnded(error.to_string());
    let (sender, connection) = hyper::client::conn::http2::Builder::new(TokioExecutor::new())
        // Enough for all streams' snapshots: the link is not what is measured.
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(64 << 20)
        .handshake(TokioIo::new(tcp))
        .await
        .map_err(ended)?;
    tokio::spawn(async move {
        // Its streams say why it ended.
        let _ = connection.await;
    });
    for _ in 0..count {
        let request = http::Request::get(format!("http://{}{}", source.address, source.path))
            .body(Empty::<Bytes>::new())
            .map_err(|error| BenchError::ReaderEnded(error.to_string()))?;
        let mut sender = sender.clone();
        let (numbering, synced) = (source.numbering, Arc::clone(synced));
        streams.spawn(async move {
            let answer = match sender.send_request(request).await {
                Ok(answer) => answer,
                Err(error) => return error.to_string(),
            };
            let mut body = answer.into_body();
            let mut reader = Reader::new(numbering, Keeping::Nothing);
            let mut was_synced = false;
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) => {
                        if let Some(data) = frame.data_ref() {
                            reader.read_body(data, |_| {});
                        }
                    }
                    Err(error) => return error.to_string(),
                }
                if !was_synced && reader.is_synced() {
                    was_synced = true;
                    reader.shrink();
                    synced.fetch_add(1, Ordering::Relaxed);
                }
            }
            reader.last_error().unwrap_or("the stream ended").to_owned()
        });
    }
    Ok(())
}
