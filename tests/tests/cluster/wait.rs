//! Waiting for a condition, with a deadline.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Generous: machines are slow and shared, and a passing test waits for nothing.
pub(crate) const WITHIN: Duration = Duration::from_mins(1);

/// Asks again and again until there is an answer.
pub(crate) async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WITHIN;
    loop {
        if let Some(answer) = ask().await {
            return answer;
        }
        assert!(Instant::now() < deadline, "not within {WITHIN:?}: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}
