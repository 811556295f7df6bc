//! A scope that is in backoff, and who is told of that.

use krm_stream_projection::Projection;
use krm_stream_protocol::{Observing, OpenError, UpstreamError, UpstreamErrorKind};
use krm_stream_shared::FeedReport;
use tokio::time::{Instant, timeout};

use super::support::object;
use super::{SECOND, expect, feeds, keep, keep_as, told};

/// The API server cannot be reached, and asks for 20 s.
fn away() -> OpenError {
    UpstreamError::new(UpstreamErrorKind::Unavailable)
        .with_retry_after(Some(20 * SECOND))
        .into()
}

#[tokio::test(start_paused = true)]
async fn one_that_begins_in_a_backoff_is_told_of_as_a_failed_open_at_once_and_once() {
    let feeds = feeds(Observing::default());
    let (mut first, mut script) = keep(&feeds);
    let _ = script.next_open().await.send(Err(away()));
    expect(&mut first, &["Over(NotOpened"]).await;

    let began = Instant::now();
    // Another projection of the same scope is another feed with the same backoff.
    let (mut second, mut script) = keep_as(&feeds, &Projection::spec());
    let report = told(&mut second).await;
    assert!(
        matches!(
            &report,
            FeedReport::OpenFailed { error: OpenError::Failed(error), retries_left: false }
                if *error.kind() == UpstreamErrorKind::Unavailable
        ),
        "{report:?}"
    );
    assert_eq!(began.elapsed(), std::time::Duration::ZERO);
    // What comes next is what comes of its own attempt, after the backoff.
    let silence = timeout(19 * SECOND, second.reports().next()).await;
    assert!(silence.is_err(), "{silence:?}");
    let _session = script.open_with(object("a")).await;
    assert!(began.elapsed() >= 20 * SECOND);
    expect(&mut second, &["Opened(Fresh)", "Synced"]).await;
}

#[tokio::test(start_paused = true)]
async fn one_whose_own_feed_failed_is_told_of_that_alone() {
    let feeds = feeds(Observing::default());
    let (mut keeper, mut script) = keep(&feeds);
    let began = Instant::now();
    let _ = script.next_open().await.send(Err(away()));
    expect(&mut keeper, &["Over(NotOpened"]).await;
    // It looks again after a second, and meets the backoff.
    let _session = script.open_with(object("a")).await;
    assert!(began.elapsed() >= 20 * SECOND);
    expect(&mut keeper, &["Opened(Fresh)", "Synced"]).await;
}
