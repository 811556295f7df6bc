//! The Nodes of the workload, one of which runs short of memory now and then.

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Part, condition, now, patch_or_restore};

const NAMES: [&str; 3] = ["node-1", "node-2", "node-3"];

/// The memory of a Node becomes short, or is enough again, every so many steps.
const PRESSURE: u64 = 15;

/// The Node that a Pod runs on.
pub(super) fn draw_name(draw: &mut Draw) -> &'static str {
    NAMES[draw.index(NAMES.len())]
}

pub(super) fn seed(simulator: &Simulator) -> Result<(), WriteError> {
    for (index, name) in (1..).zip(NAMES) {
        simulator.apply("nodes", node(index, name, &now(simulator)))?;
    }
    Ok(())
}

pub(super) fn step(simulator: &Simulator, step: u64) -> Result<(), WriteError> {
    if !step.is_multiple_of(PRESSURE) {
        return Ok(());
    }
    let is_short = !(step / PRESSURE).is_multiple_of(2);
    let whole = node(2, NAMES[1], &now(simulator));
    let ready = &whole["status"]["conditions"][1];
    let conditions = json!({"status": {"conditions": [memory_pressure(is_short, &now(simulator)), ready]}});
    patch_or_restore(simulator, ("nodes", Part::Status), whole.clone(), &conditions)
}

fn node(index: u32, name: &str, since: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name}},
        "spec": {"podCIDR": format!("10.0.{index}.0/24")},
        "status": {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [
                memory_pressure(false, since),
                condition("Ready", true, "KubeletReady", "kubelet is posting ready status", since),
            ],
            "addresses": [{"type": "InternalIP", "address": format!("192.0.2.{index}")}],
            "nodeInfo": {"kubeletVersion": "v1.36.0", "operatingSystem": "linux", "architecture": "amd64"},
        },
    })
}

fn memory_pressure(is_short: bool, since: &str) -> Value {
    let (reason, message) = if is_short {
        (
            "KubeletHasInsufficientMemory",
            "kubelet has insufficient memory available",
        )
    } else {
        (
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        )
    };
    condition("MemoryPressure", is_short, reason, message, since)
}
