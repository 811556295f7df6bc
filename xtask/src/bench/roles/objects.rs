//! The objects of the bench: ConfigMaps of one size, in one namespace, each with the time of its last write.

use krm_stream_simulator::{Simulator, WriteError};
use serde_json::{Value, json};

use crate::wait;

/// Where they are.
pub(crate) const RESOURCE: &str = "configmaps";
pub(crate) const NAMESPACE: &str = "bench";

/// What an object has besides its filling, as a watch sends it.
const FRAME_BYTES: usize = 330;

/// The objects of a simulator, changed one after the other in an order that visits each once in a round.
#[derive(Debug)]
pub(crate) struct Objects {
    names: Vec<String>,
    next: usize,
    stride: usize,
    changes: u64,
    newest: u64,
}

impl Objects {
    /// Creates `count` objects of about `bytes` each.
    pub(crate) fn create(simulator: &Simulator, count: usize, bytes: usize) -> Result<Self, WriteError> {
        let names: Vec<String> = (0..count).map(|index| format!("object-{index:06}")).collect();
        for (index, name) in names.iter().enumerate() {
            simulator.create(RESOURCE, object(index, name, bytes.saturating_sub(FRAME_BYTES)))?;
        }
        Ok(Self {
            names,
            next: 0,
            stride: stride(count),
            changes: 0,
            newest: 0,
        })
    }

    /// Changes the next one; its stamp is the time of the write.
    pub(crate) fn change(&mut self, simulator: &Simulator) -> Result<(), WriteError> {
        let Some(name) = self.names.get(self.next) else {
            return Ok(());
        };
        self.next = (self.next + self.stride) % self.names.len();
        self.changes += 1;
        self.newest = wait::unix_nanos();
        let patch = json!({"data": {"stamp": self.newest.to_string()}});
        simulator.patch(RESOURCE, NAMESPACE, name, &patch)?;
        Ok(())
    }

    /// The stamp of the latest change, in nanoseconds since 1970; 0 before the first.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// How many changes were made.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

/// A step that has no factor in common with `count`, so that a round visits each object once; near the golden
/// ratio, so that neighbours change at different times.
fn stride(count: usize) -> usize {
    let start = (count as f64 * 0.618) as usize;
    (start.max(1)..=count.max(1))
        .find(|step| greatest_common_divisor(*step, count) == 1)
        .unwrap_or(1)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

fn object(index: usize, name: &str, filling: usize) -> Value {
    // Not one letter over and over, which no real object is; the same in every run.
    let mut state = index as u64 + 1;
    let filling: String = (0..filling)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            char::from(b'a' + ((state >> 33) % 26) as u8)
        })
        .collect();
    json!({
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/part-of": "bench", "shard": (index % 10).to_string()},
        },
        "data": {"stamp": wait::unix_nanos().to_string(), "filling": filling},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_visits_each_object_once() {
        for count in [1, 2, 3, 10, 97, 1_000, 50_000] {
            let stride = stride(count);
            let mut seen = vec![false; count];
            let mut at = 0;
            for _ in 0..count {
                assert!(!seen[at], "{at} of {count} came twice in a round");
                seen[at] = true;
                at = (at + stride) % count;
            }
        }
    }
}
