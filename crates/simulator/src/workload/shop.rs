//! The other objects of the workload: configuration, credentials, Events and Widgets.

use std::collections::VecDeque;

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{condition, now};

/// How many Events are kept.
const EVENTS: usize = 12;

/// A Secret rotates every so many steps.
const ROTATION: u64 = 20;

/// A Widget comes or goes every so many steps.
const WIDGET_TURNOVER: u64 = 15;

#[derive(Debug, Default)]
pub(super) struct Shop {
    events: VecDeque<String>,
    widgets: VecDeque<String>,
    drawn_widgets: u64,
}

impl Shop {
    pub(super) fn seed(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        for (namespace, name, data) in [
            (
                "shop",
                "app-config",
                json!({"currency": "EUR", "log-level": "info", "page.html": "<h1>Shop & more</h1>"}),
            ),
            (
                "shop",
                "feature-flags",
                json!({"new-checkout": "false", "search-beta": "true"}),
            ),
            ("shop", "counters", json!({"orders": "0"})),
            (
                "team-a",
                "worker-config",
                json!({"concurrency": "4", "queue": "orders"}),
            ),
        ] {
            let labels = json!({"app.kubernetes.io/part-of": "shop"});
            let object =
                json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data});
            simulator.apply("configmaps", object)?;
        }
        for (namespace, name, kind) in [
            ("shop", "db", "Opaque"),
            ("shop", "payment-api", "Opaque"),
            ("team-a", "queue", "Opaque"),
        ] {
            let object = json!({
                "metadata": {"name": name, "namespace": namespace, "annotations": {"team": "shop"}},
                "stringData": {"user": "app", "password": draw.letters(16)},
                "type": kind,
            });
            simulator.apply("secrets", object)?;
        }
        for (name, port) in [("web", 80), ("cart", 8080), ("search", 8081)] {
            let spec = json!({
                "ports": [{"name": "http", "protocol": "TCP", "port": port, "targetPort": 8080}],
                "selector": {"app.kubernetes.io/name": name},
                "type": "ClusterIP",
            });
            let status = json!({"loadBalancer": {}});
            let object =
                json!({"metadata": {"name": name, "namespace": "shop"}, "spec": spec, "status": status});
            simulator.apply("services", object)?;
        }
        for _ in 0..3 {
            self.add_widget(simulator, draw)?;
        }
        Ok(())
    }

    pub(super) fn step(
        &mut self,
        simulator: &Simulator,
        step: u64,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        let counted = json!({"data": {"orders": step.to_string()}});
        simulator.patch("configmaps", "shop", "counters", &counted)?;
        if step.is_multiple_of(5) {
            let flag = json!({"data": {"new-checkout": (step / 5).is_multiple_of(2).to_string()}});
            simulator.patch("configmaps", "shop", "feature-flags", &flag)?;
        }
        if step.is_multiple_of(ROTATION) {
            let rotated = json!({"stringData": {"password": draw.letters(16)}});
            simulator.patch("secrets", "shop", "db", &rotated)?;
        }
        if step.is_multiple_of(WIDGET_TURNOVER) {
            if self.widgets.len() > 3
                && let Some(oldest) = self.widgets.pop_front()
            {
                simulator.delete("widgets.example.com", "shop", &oldest)?;
            } else {
                self.add_widget(simulator, draw)?;
            }
        }
        self.work_on_widget(simulator, step, draw)?;
        self.report(simulator, step, draw)
    }

    fn add_widget(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        self.drawn_widgets += 1;
        let name = format!("widget-{}", self.drawn_widgets);
        let colour = ["red", "green", "blue"][draw.index(3)];
        let object = json!({
            "metadata": {"name": name, "namespace": "shop", "labels": {"colour": colour}},
            "spec": {"size": draw.below(9) + 1, "weight": 0.5, "note": "<fragile>", "parts": []},
            "status": {"conditions": [condition("Ready", false, "Assembling", "just begun", &now(simulator))]},
        });
        simulator.apply("widgets.example.com", object)?;
        self.widgets.push_back(name);
        Ok(())
    }

    /// A Widget becomes ready, or not.
    fn work_on_widget(
        &mut self,
        simulator: &Simulator,
        step: u64,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        if self.widgets.is_empty() {
            return Ok(());
        }
        let name = &self.widgets[draw.index(self.widgets.len())];
        let widget = simulator
            .get("widgets.example.com", "shop", name)
            .unwrap_or_default();
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
        simulator.patch_status("widgets.example.com", "shop", name, &status)?;
        Ok(())
    }

    /// An Event that counts up, or a new one.
    fn report(&mut self, simulator: &Simulator, step: u64, draw: &mut Draw) -> Result<(), WriteError> {
        let time = now(simulator);
        let last = self.events.back().cloned();
        if let Some(last) = last.filter(|_| !step.is_multiple_of(3)) {
            let count = simulator
                .get("events", "shop", &last)
                .and_then(|event| event["count"].as_i64())
                .unwrap_or_default();
            let again = json!({"count": count + 1, "lastTimestamp": time});
            simulator.patch("events", "shop", &last, &again)?;
            return Ok(());
        }
        let name = format!("web.{:016x}", draw.number());
        let involved = simulator
            .get("deployments.apps", "shop", "web")
            .unwrap_or_default();
        let event: Value = json!({
            "metadata": {"name": name, "namespace": "shop"},
            "involvedObject": {
                "kind": "Deployment",
                "namespace": "shop",
                "name": "web",
                "uid": involved["metadata"]["uid"],
                "apiVersion": "apps/v1",
            },
            "reason": "ScalingReplicaSet",
            "message": format!("Looked after web at step {step}"),
            "source": {"component": "deployment-controller"},
            "firstTimestamp": time,
            "lastTimestamp": time,
            "count": 1,
            "type": "Normal",
            "eventTime": null,
            "reportingComponent": "deployment-controller",
            "reportingInstance": "",
        });
        simulator.apply("events", event)?;
        self.events.push_back(name);
        if self.events.len() > EVENTS
            && let Some(oldest) = self.events.pop_front()
        {
            simulator.delete("events", "shop", &oldest)?;
        }
        Ok(())
    }
}
