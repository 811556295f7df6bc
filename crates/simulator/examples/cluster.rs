//! A simulated cluster that changes once a second, for `curl`, `kubectl` or a gateway to look at:
//! `cargo run -p krm-stream-simulator --example cluster -- 127.0.0.1:8001`.

use std::{error::Error, net::SocketAddr, time::Duration};

use krm_stream_simulator::{Simulator, Workload};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args()
        .nth(1)
        .as_deref()
        .unwrap_or("127.0.0.1:8001")
        .parse()?;
    let simulator = Simulator::builder().address(address).start().await?;
    let mut workload = Workload::new(1);
    workload.seed(&simulator)?;
    eprintln!(
        "try: curl -N '{}/api/v1/namespaces/shop/configmaps?watch=1'",
        simulator.url()
    );
    let mut every_second = tokio::time::interval(Duration::from_secs(1));
    loop {
        every_second.tick().await;
        workload.step(&simulator, 1)?;
    }
}
