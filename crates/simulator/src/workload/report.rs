//! The Pods of a job that writes reports: each starts, runs, succeeds, and is cleared away.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Found, SHOP, condition, node, now, unless_gone};

/// A new Pod comes every so many steps.
const EVERY: u64 = 10;

/// How old a Pod is, in steps, when it runs, has succeeded, and goes.
const RUNS: u64 = 2;
const SUCCEEDS: u64 = 9;
const GOES: u64 = 24;

#[derive(Debug, Default)]
pub(super) struct Reports {
    pods: VecDeque<Report>,
}

#[derive(Debug)]
struct Report {
    name: String,
    begun_at: u64,
}

impl Reports {
    pub(super) fn step(
        &mut self,
        simulator: &Simulator,
        step: u64,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        let mut living = VecDeque::new();
        for report in self.pods.drain(..) {
            if report.grow(simulator, step)? == Found::There {
                living.push_back(report);
            }
        }
        self.pods = living;
        if step % EVERY == 1 {
            let name = format!("report-{}-{}", 1000 + step / EVERY, draw.letters(5));
            simulator.apply("pods", pod(&name, draw))?;
            self.pods.push_back(Report { name, begun_at: step });
        }
        Ok(())
    }
}

impl Report {
    fn grow(&self, simulator: &Simulator, step: u64) -> Result<Found, WriteError> {
        let time = now(simulator);
        let status = match step - self.begun_at {
            RUNS => json!({
                "phase": "Running",
                "conditions": [condition("Ready", true, "", "", &time)],
                "startTime": time,
                "containerStatuses": [container(true, &json!({"running": {"startedAt": time}}))],
            }),
            SUCCEEDS => {
                let terminated = json!({"exitCode": 0, "reason": "Completed", "finishedAt": time});
                json!({
                    "phase": "Succeeded",
                    "conditions": [condition("Ready", false, "PodCompleted", "", &time)],
                    "containerStatuses": [container(false, &json!({"terminated": terminated}))],
                })
            }
            GOES => {
                unless_gone(simulator.delete("pods", SHOP, &self.name))?;
                return Ok(Found::Gone);
            }
            _ => return Ok(Found::There),
        };
        let patch = json!({"status": status});
        unless_gone(simulator.patch_status("pods", SHOP, &self.name, &patch).map(drop))
    }
}

fn pod(name: &str, draw: &mut Draw) -> Value {
    json!({
        "metadata": {
            "name": name,
            "namespace": SHOP,
            "labels": {"app.kubernetes.io/name": "report", "app.kubernetes.io/part-of": "shop"},
        },
        "spec": {
            "containers": [{"name": "report", "image": "registry.example.com/report:1.0", "imagePullPolicy": "IfNotPresent"}],
            "restartPolicy": "Never",
            "nodeName": node::draw_name(draw),
        },
        "status": {
            "phase": "Pending",
            "containerStatuses": [container(false, &json!({"waiting": {"reason": "ContainerCreating"}}))],
        },
    })
}

fn container(ready: bool, state: &Value) -> Value {
    json!({"name": "report", "ready": ready, "restartCount": 0, "state": state})
}
