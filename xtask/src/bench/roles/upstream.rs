//! The API server of the bench: the simulator in a process of its own, whose objects change at a rate.

use clap::Args;
use krm_stream_simulator::Simulator;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::{Duration, sleep};

use super::objects::{Objects, RESOURCE};
use super::{Order, Pace, announce, obey};
use crate::bench::BenchError;
use crate::bench::load::digest;
use crate::wait;

/// How many changes are kept for a watch that reconnects.
const HISTORY: usize = 100_000;

#[derive(Clone, Debug, Args)]
pub(crate) struct Flags {
    /// How many objects.
    #[arg(long)]
    objects: usize,
    /// The size of each, in bytes.
    #[arg(long)]
    object_bytes: usize,
}

pub(super) fn run(flags: &Flags) -> Result<(), BenchError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BenchError::io("start a runtime"))?;
    runtime.block_on(serve(flags))
}

async fn serve(flags: &Flags) -> Result<(), BenchError> {
    let simulator = Simulator::builder()
        .history(HISTORY)
        .start()
        .await
        .map_err(BenchError::io("listen"))?;
    let refused = |error: krm_stream_simulator::WriteError| BenchError::Role(error.to_string());
    let mut objects = Objects::create(&simulator, flags.objects, flags.object_bytes).map_err(refused)?;
    let (sender, mut orders) = mpsc::unbounded_channel();
    obey(move |order| {
        // The loop below ends with the process only.
        let _ = sender.send(order);
    });
    announce(simulator.address());
    let clock = wait::stopwatch();
    let mut pace = Pace::STOPPED;
    loop {
        let next = pace.next(clock());
        tokio::select! {
            biased;
            order = orders.recv() => match order {
                None => return Ok(()),
                Some(Order::Rate(rate)) => pace = Pace::begin(rate, u64::MAX, clock()),
                Some(Order::Burst { changes, rate }) => pace = Pace::begin(rate, changes, clock()),
                Some(Order::Report) => {
                    let counts = simulator.counts();
                    println!("{}", json!({
                        "changes": objects.changes(),
                        "newest": objects.newest(),
                        "list": counts.list,
                        "watch": counts.watch,
                        "open_watches": counts.open_watches,
                    }));
                }
                Some(Order::Digest) => {
                    let all = simulator.objects(RESOURCE);
                    let digest = digest(all.iter().map(AsRef::as_ref));
                    println!("{}", json!({"objects": digest.objects, "sum": digest.sum}));
                }
            },
            () = sleep(Duration::from_secs_f64(next.unwrap_or(3600.0))) => {
                for _ in 0..pace.due(clock()) {
                    objects.change(&simulator).map_err(refused)?;
                }
            }
        }
    }
}
