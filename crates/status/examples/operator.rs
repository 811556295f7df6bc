//! What an operator with two watches publishes while things happen to them. Run it with
//! `cargo run --package krm-stream-status --example operator`.

#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use krm_stream_protocol::{OpenError, ResourceVersion, SessionEnd, Start, UpstreamError};
use krm_stream_status::{
    AfterWrite, Conditions, Ended, PlanError, ReadStatus, Readiness, Retries, Status, StreamSummary,
    Timestamp, WatchStream, WriteOutcome, plan_write,
};

/// The status of the operator's own resource.
#[derive(Clone, Debug, Default, serde::Serialize)]
struct MyStatus {
    conditions: Conditions,
    streams: String,
}

impl Status for MyStatus {
    fn conditions(&self) -> &Conditions {
        &self.conditions
    }
}

/// The operator, and the object as it was last read.
#[derive(Debug, Default)]
struct Operator {
    orders: WatchStream,
    carts: WatchStream,
    read: Option<MyStatus>,
    version: u32,
}

impl Operator {
    /// Says what is written after something happened, and stores it as an API server would.
    fn evaluate(&mut self, what: &str, seconds: i64) -> Result<(), PlanError> {
        let summary = StreamSummary::of([("orders", self.orders.state()), ("carts", self.carts.state())]);
        let mut desired = self.read.clone().unwrap_or_default();
        let now = Timestamp::from_unix_seconds(1_785_576_600 + seconds);
        Readiness::of(summary.gate()).publish(&mut desired.conditions, 1, now);
        desired.streams = summary.to_string();

        println!("{what}:");
        let resource_version = &ResourceVersion::from(self.version.to_string().as_str());
        let read = ReadStatus {
            resource_version,
            status: self.read.as_ref(),
        };
        let Some(plan) = plan_write(&read, &desired)? else {
            println!("  nothing is written");
            return Ok(());
        };
        println!("  the patch is {}", plan.patch().body());
        self.version += 1;
        let stored = WriteOutcome::Persisted(self.version.to_string().as_str().into());
        if let AfterWrite::Tell {
            event: Some(event), ..
        } = plan.settle(stored)
        {
            println!(
                "  the event is {} {}: {}",
                event.severity().as_str(),
                event.reason(),
                event.note()
            );
        }
        self.read = Some(desired);
        Ok(())
    }
}

fn main() -> Result<(), PlanError> {
    let mut operator = Operator {
        version: 1,
        ..Operator::default()
    };
    operator.evaluate("the operator begins", 0)?;

    for stream in [&mut operator.orders, &mut operator.carts] {
        stream.opened(&Start::Fresh);
        stream.synced();
    }
    operator.evaluate("both snapshots are complete", 1)?;

    for stream in [&mut operator.orders, &mut operator.carts] {
        stream.lived();
    }
    operator.evaluate("five seconds later both sessions still live", 6)?;

    operator.orders.ended(Ended::Session(&SessionEnd::Closed));
    operator.orders.opened(&Start::After("4711".into()));
    operator.evaluate("a watch reached its timeout and goes on", 400)?;

    operator.carts.ended(Ended::Session(&SessionEnd::Expired));
    operator.evaluate("the other one lost its place", 500)?;

    let forbidden = OpenError::from(UpstreamError::forbidden(None));
    operator.carts.open_failed(&forbidden, Retries::Left);
    operator.evaluate("and may not list any more", 501)?;

    operator.carts.opened(&Start::Fresh);
    operator.carts.synced();
    operator.evaluate("the right is back", 600)
}
