//! A Deployment that rolls out one Pod after the other, as its controller would have it.

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{condition, now};

/// A Deployment and its Pods.
#[derive(Debug)]
pub(super) struct Rollout {
    namespace: &'static str,
    name: &'static str,
    replicas: usize,
    revision: u64,
    /// What the Pods of the revision are named after.
    template_hash: String,
    pods: Vec<Pod>,
    started: String,
    completed: Option<String>,
}

#[derive(Debug)]
struct Pod {
    name: String,
    revision: u64,
    running: bool,
}

impl Rollout {
    pub(super) fn new(namespace: &'static str, name: &'static str, replicas: usize) -> Self {
        Self {
            namespace,
            name,
            replicas,
            revision: 1,
            template_hash: String::new(),
            pods: Vec::new(),
            started: String::new(),
            completed: None,
        }
    }

    pub(super) fn seed(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        let labels = self.labels();
        let object = json!({
            "metadata": {"name": self.name, "namespace": self.namespace, "labels": labels},
            "spec": {
                "replicas": self.replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {
                        "containers": [{
                            "name": self.name,
                            "image": self.image(),
                            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                            "imagePullPolicy": "IfNotPresent",
                        }],
                        "restartPolicy": "Always",
                        "terminationGracePeriodSeconds": 30,
                    },
                },
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
        });
        simulator.apply("deployments.apps", object)?;
        self.template_hash = draw.letters(9);
        self.started = now(simulator);
        while self.pods.len() < self.replicas {
            self.add_pod(simulator, draw)?;
        }
        for index in 0..self.pods.len() {
            self.run_pod(simulator, index, draw)?;
        }
        self.write_status(simulator)
    }

    /// A new image.
    pub(super) fn begin(&mut self, simulator: &Simulator) -> Result<(), WriteError> {
        self.revision += 1;
        self.template_hash.clear();
        self.started = now(simulator);
        self.completed = None;
        let containers = json!([{
            "name": self.name,
            "image": self.image(),
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            "imagePullPolicy": "IfNotPresent",
        }]);
        let patch = json!({
            "metadata": {"annotations": {"deployment.kubernetes.io/revision": self.revision.to_string()}},
            "spec": {"template": {"spec": {"containers": containers}}},
        });
        simulator.patch("deployments.apps", self.namespace, self.name, &patch)?;
        Ok(())
    }

    /// One thing of what is left to do: a Pod starts to run, an old one goes, a new one comes.
    pub(super) fn step(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        if self.template_hash.is_empty() {
            self.template_hash = draw.letters(9);
        }
        let old = self.pods.iter().position(|pod| pod.revision < self.revision);
        if let Some(starting) = self.pods.iter().position(|pod| !pod.running) {
            self.run_pod(simulator, starting, draw)?;
        } else if self.pods.len() > self.replicas {
            let leaving = self.pods.remove(old.unwrap_or(0));
            simulator.delete("pods", self.namespace, &leaving.name)?;
        } else if old.is_some() {
            self.add_pod(simulator, draw)?;
        } else if self.completed.is_some() {
            return Ok(());
        }
        self.write_status(simulator)
    }

    fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name, "app.kubernetes.io/part-of": "shop"})
    }

    fn image(&self) -> String {
        format!("registry.example.com/{}:1.{}", self.name, self.revision)
    }

    fn add_pod(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        let pod = Pod {
            name: format!("{}-{}-{}", self.name, self.template_hash, draw.letters(5)),
            revision: self.revision,
            running: false,
        };
        let owner = simulator
            .get("deployments.apps", self.namespace, self.name)
            .unwrap_or_default();
        let mut labels = self.labels();
        labels["pod-template-hash"] = json!(self.template_hash);
        let object = json!({
            "metadata": {
                "name": pod.name,
                "namespace": self.namespace,
                "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": self.name,
                    "uid": owner["metadata"]["uid"],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{"name": self.name, "image": self.image(), "imagePullPolicy": "IfNotPresent"}],
                "restartPolicy": "Always",
                "nodeName": format!("node-{}", draw.below(3) + 1),
            },
            "status": {"phase": "Pending", "conditions": [
                condition("Ready", false, "ContainersNotReady", "containers are starting", &now(simulator)),
            ]},
        });
        simulator.apply("pods", object)?;
        self.pods.push(pod);
        Ok(())
    }

    fn run_pod(&mut self, simulator: &Simulator, index: usize, draw: &mut Draw) -> Result<(), WriteError> {
        let Some(pod) = self.pods.get_mut(index) else {
            return Ok(());
        };
        pod.running = true;
        let started = now(simulator);
        let status = json!({"status": {
            "phase": "Running",
            "conditions": [condition("Ready", true, "", "", &started)],
            "podIP": format!("10.0.{}.{}", draw.below(3) + 1, draw.below(250) + 2),
            "startTime": started,
            "containerStatuses": [{
                "name": self.name,
                "ready": true,
                "restartCount": 0,
                "state": {"running": {"startedAt": started}},
            }],
        }});
        simulator.patch_status("pods", self.namespace, &pod.name, &status)?;
        Ok(())
    }

    fn write_status(&mut self, simulator: &Simulator) -> Result<(), WriteError> {
        let deployment = simulator
            .get("deployments.apps", self.namespace, self.name)
            .unwrap_or_default();
        let ready = self.pods.iter().filter(|pod| pod.running).count();
        let updated = self
            .pods
            .iter()
            .filter(|pod| pod.revision == self.revision)
            .count();
        let done = ready >= self.replicas && updated == self.replicas && self.pods.len() == self.replicas;
        if done && self.completed.is_none() {
            self.completed = Some(now(simulator));
        }
        let replica_set = format!("{}-{}", self.name, self.template_hash);
        let (reason, message) = if self.completed.is_some() {
            (
                "NewReplicaSetAvailable",
                format!("ReplicaSet \"{replica_set}\" has successfully progressed."),
            )
        } else {
            (
                "ReplicaSetUpdated",
                format!("ReplicaSet \"{replica_set}\" is progressing."),
            )
        };
        let mut progress = condition("Progressing", true, reason, &message, &self.started);
        progress["lastUpdateTime"] = json!(self.completed.as_ref().unwrap_or(&self.started));
        let available = condition(
            "Available",
            true,
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
            &self.started,
        );
        let status = json!({"status": {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": self.pods.len(),
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "conditions": [available, progress],
        }});
        simulator.patch_status("deployments.apps", self.namespace, self.name, &status)?;
        Ok(())
    }
}
