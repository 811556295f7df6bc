//! Many ConfigMaps of one size.

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Part, Workload, patch_or_restore};

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
            simulator.apply("configmaps", object(index, &draw.letters(self.filling)))?;
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
            // One that comes back is smaller than it was: its filling is not drawn for each change.
            let whole = object(draw.index(self.count), "");
            patch_or_restore(simulator, ("configmaps", Part::Main), whole, &patch)?;
        }
        Ok(())
    }
}

fn object(index: usize, filling: &str) -> Value {
    json!({
        "metadata": {
            "name": format!("item-{index:05}"),
            "namespace": Workload::BULK_NAMESPACE,
            "labels": {"app.kubernetes.io/part-of": "bulk", "shard": (index % 10).to_string()},
        },
        "data": {"changes": "0", "filling": filling},
    })
}
