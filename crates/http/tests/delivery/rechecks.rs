//! A recheck of a stream whose reader takes nothing, over real connections: what was handed to the transport before is all that
//! still comes.

use std::time::Duration;

use krm_stream_protocol::WatchEvent;
use tokio::time::sleep;

use super::support::{AskedAuthorizer, Client, Host, Kind, config_map};

/// Far less than what is ahead, and more than any one buffer.
const OBJECTS: u64 = 16;
const OBJECT_BYTES: usize = 64 * 1024;
/// The error that ends a stream.
const LAST_EVENT_BYTES: u64 = 300;

#[tokio::test(start_paused = true)]
async fn after_a_denial_only_what_the_transport_had_arrives_and_then_the_end() {
    for kind in Kind::ALL {
        for is_allowed in [false, true] {
            let (authorizer, mut questions) = AskedAuthorizer::new();
            let mut host = Host::with(|builder| {
                builder
                    .authorizer(authorizer)
                    .write_timeout(Duration::from_hours(1))
            });
            let mut client = Client::connect(kind, host.gateway.clone()).await;
            let (mut stream, session) = tokio::join!(client.open(), async {
                questions.allow_next().await;
                host.script.next_open().await.accept_with([], "1")
            });
            assert_eq!(stream.types(2).await, ["reset", "synced"]);
            for number in 0..OBJECTS {
                let object = config_map(
                    &format!("o{number}"),
                    number + 2,
                    &char::from(b'a' + u8::try_from(number).unwrap())
                        .to_string()
                        .repeat(OBJECT_BYTES),
                );
                session.send(WatchEvent::Added(object));
            }
            sleep(Duration::from_secs(1)).await;
            let before = host.bytes_handed_out();
            let all = OBJECTS * OBJECT_BYTES as u64;
            assert!(
                before > 16 * 1024 && before < all / 3,
                "{kind:?}: {before} bytes fill its buffers"
            );
            assert_eq!(host.gateway.recheck(|_, _| true), 1);
            session.send(WatchEvent::Added(config_map("canary", OBJECTS + 2, "v")));
            sleep(Duration::from_secs(1)).await;
            assert_eq!(host.bytes_handed_out(), before, "{kind:?}: it takes nothing");

            // It reads again.
            let answering = async {
                let question = questions.next().await;
                sleep(Duration::from_secs(1)).await;
                if is_allowed {
                    question.answer(Ok(()));
                } else {
                    question.deny();
                }
            };
            let reading = async {
                while let Some(chunk) = stream.chunk().await {
                    let seen = stream.raw.len() - chunk.unwrap().len();
                    let new = &stream.raw[seen.saturating_sub(6)..];
                    if new.windows(6).any(|bytes| bytes == b"canary") {
                        return true;
                    }
                }
                false
            };
            let ((), has_come) = tokio::join!(answering, reading);
            assert_eq!(has_come, is_allowed, "{kind:?}");
            if !is_allowed {
                let after = host.bytes_handed_out() - before;
                assert!(after <= LAST_EVENT_BYTES, "{kind:?}: {after} bytes more");
                assert_eq!(stream.raw.len() as u64, before + after, "{kind:?}");
                drop(session);
                host.is_left_alone().await;
            }
        }
    }
}
