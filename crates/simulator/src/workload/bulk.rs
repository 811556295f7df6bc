//! Many ConfigMaps of one size.

use serde_json::json;

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::Workload;

/// What an object of the bulk has besides its filling, as a watch sends it.
const FRAME_BYTES: usize = 300;

#[derive(Debug, Default)]
pub(super) struct Bulk {
    count: usize,
    filling: usize,
    changes: u64,
}

impl Bulk {
    pub(super) fn new(count: usize, bytes: usize) -> Self {
        Self {
            count,
            filling: bytes.saturating_sub(FRAME_BYTES),
            changes: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn seed(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        for index in 0..self.count {
            let object = json!({
                "metadata": {
                    "name": name(index),
                    "namespace": Workload::BULK_NAMESPACE,
                    "labels": {"app.kubernetes.io/part-of": "load", "shard": (index % 10).to_string()},
                },
                "data": {"changes": "0", "filling": draw.letters(self.filling)},
            });
            simulator.apply("configmaps", object)?;
        }
        Ok(())
    }

    pub(super) fn change(
        &mut self,
        simulator: &Simulator,
        changes: usize,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        if self.is_empty() {
            return Ok(());
        }
        for _ in 0..changes {
            self.changes += 1;
            let patch = json!({"data": {"changes": self.changes.to_string()}});
            simulator.patch(
                "configmaps",
                Workload::BULK_NAMESPACE,
                &name(draw.index(self.count)),
                &patch,
            )?;
        }
        Ok(())
    }
}

fn name(index: usize) -> String {
    format!("item-{index:05}")
}
