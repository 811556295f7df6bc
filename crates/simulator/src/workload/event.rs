//! Events that count up, and make room for newer ones.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Found, SHOP, now, unless_gone};

/// How many Events are kept.
const KEPT: usize = 12;

/// A new Event comes every so many steps.
const NEW: u64 = 3;

/// Of the new Events one in so many is a warning.
const WARNING: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Events {
    names: VecDeque<String>,
}

impl Events {
    /// An Event that counts up, or a new one. `pod` is one that a warning may be about.
    pub(super) fn step(
        &mut self,
        simulator: &Simulator,
        step: u64,
        pod: Option<&str>,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        if !step.is_multiple_of(NEW) && self.count_up(simulator)? == Found::There {
            return Ok(());
        }
        let name = format!("web.{:016x}", draw.number());
        let mut event = match pod.filter(|_| step / NEW % WARNING == 1) {
            Some(pod) => unhealthy(simulator, pod),
            None => scaled(simulator, step),
        };
        let time = now(simulator);
        event["metadata"] = json!({"name": name, "namespace": SHOP});
        event["firstTimestamp"] = json!(time);
        event["lastTimestamp"] = json!(time);
        event["count"] = json!(1);
        event["eventTime"] = Value::Null;
        simulator.apply("events", event)?;
        self.names.push_back(name);
        if self.names.len() > KEPT
            && let Some(oldest) = self.names.pop_front()
        {
            unless_gone(simulator.delete("events", SHOP, &oldest))?;
        }
        Ok(())
    }

    fn count_up(&self, simulator: &Simulator) -> Result<Found, WriteError> {
        let Some(last) = self.names.back() else {
            return Ok(Found::Gone);
        };
        let event = simulator.get("events", SHOP, last).unwrap_or_default();
        let count = event["count"].as_i64().unwrap_or_default().saturating_add(1);
        let again = json!({"count": count, "lastTimestamp": now(simulator)});
        unless_gone(simulator.patch("events", SHOP, last, &again).map(drop))
    }
}

fn scaled(simulator: &Simulator, step: u64) -> Value {
    let web = simulator.get("deployments.apps", SHOP, "web").unwrap_or_default();
    json!({
        "involvedObject": {
            "kind": "Deployment",
            "namespace": SHOP,
            "name": "web",
            "uid": web["metadata"]["uid"],
            "apiVersion": "apps/v1",
        },
        "reason": "ScalingReplicaSet",
        "message": format!("Looked after web at step {step}"),
        "source": {"component": "deployment-controller"},
        "type": "Normal",
        "reportingComponent": "deployment-controller",
        "reportingInstance": "",
    })
}

fn unhealthy(simulator: &Simulator, pod: &str) -> Value {
    let involved = simulator.get("pods", SHOP, pod).unwrap_or_default();
    let host = &involved["spec"]["nodeName"];
    json!({
        "involvedObject": {
            "kind": "Pod",
            "namespace": SHOP,
            "name": pod,
            "uid": involved["metadata"]["uid"],
            "apiVersion": "v1",
        },
        "reason": "Unhealthy",
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 503",
        "source": {"component": "kubelet", "host": host},
        "type": "Warning",
        "reportingComponent": "kubelet",
        "reportingInstance": host,
    })
}
