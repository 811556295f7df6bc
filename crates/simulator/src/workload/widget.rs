//! Widgets, the workload's custom resource: they come and go, and become ready or not.

use std::collections::VecDeque;

use serde_json::json;

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Found, SHOP, condition, now, unless_gone};

const WIDGETS: &str = "widgets.example.com";

/// How many Widgets there are at least.
const COUNT: usize = 3;

/// A Widget comes or goes every so many steps.
const TURNOVER: u64 = 15;

#[derive(Debug, Default)]
pub(super) struct Widgets {
    names: VecDeque<String>,
    added: u64,
}

impl Widgets {
    pub(super) fn seed(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        for _ in 0..COUNT {
            self.add(simulator, draw)?;
        }
        Ok(())
    }

    pub(super) fn step(
        &mut self,
        simulator: &Simulator,
        step: u64,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        if step.is_multiple_of(TURNOVER) {
            if self.names.len() > COUNT
                && let Some(oldest) = self.names.pop_front()
            {
                unless_gone(simulator.delete(WIDGETS, SHOP, &oldest))?;
            } else {
                self.add(simulator, draw)?;
            }
        }
        self.work_on_one(simulator, step, draw)
    }

    fn add(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        self.added += 1;
        let name = format!("widget-{}", self.added);
        let colour = ["red", "green", "blue"][draw.index(3)];
        let object = json!({
            "metadata": {"name": name, "namespace": SHOP, "labels": {"colour": colour}},
            "spec": {"size": draw.below(9) + 1, "weight": 0.5, "note": "<fragile>", "parts": []},
            "status": {"conditions": [condition("Ready", false, "Assembling", "just begun", &now(simulator))]},
        });
        simulator.apply(WIDGETS, object)?;
        self.names.push_back(name);
        Ok(())
    }

    /// A Widget becomes ready, or not.
    fn work_on_one(&mut self, simulator: &Simulator, step: u64, draw: &mut Draw) -> Result<(), WriteError> {
        let index = draw.index(self.names.len());
        let Some(name) = self.names.get(index) else {
            return Ok(());
        };
        let widget = simulator.get(WIDGETS, SHOP, name).unwrap_or_default();
        let ready = !step.is_multiple_of(4);
        let before = &widget["status"]["conditions"][0];
        let unchanged = (before["status"] == "True") == ready;
        let since = match before["lastTransitionTime"].as_str() {
            Some(since) if unchanged => since.to_owned(),
            Some(_) | None => now(simulator),
        };
        let (reason, message) = if ready {
            ("Assembled", "all parts are in place")
        } else {
            ("Assembling", "a part is missing")
        };
        let status = json!({"status": {
            "observedGeneration": widget["metadata"]["generation"],
            "checks": step,
            "conditions": [condition("Ready", ready, reason, message, &since)],
        }});
        let patched = simulator.patch_status(WIDGETS, SHOP, name, &status).map(drop);
        if unless_gone(patched)? == Found::Gone {
            self.names.remove(index);
        }
        Ok(())
    }
}
