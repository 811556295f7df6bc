//! A Deployment that rolls out one Pod after the other, as its controller would have it.

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Part, condition, node, now, patch_or_restore, unless_gone};

const DEPLOYMENTS: &str = "deployments.apps";

/// Of the steps at which nothing is left to do, one in so many sees a container start anew.
const RESTART: u64 = 60;

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
    available: Available,
}

/// Whether enough Pods run.
#[derive(Debug, Default)]
struct Available {
    holds: bool,
    since: String,
}

#[derive(Debug)]
struct Pod {
    name: String,
    revision: u64,
    restarts: u64,
    state: PodState,
}

#[derive(Debug)]
enum PodState {
    Starting { since: String },
    Running { since: String, address: String },
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
            available: Available::default(),
        }
    }

    pub(super) fn seed(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        let deployment = simulator.apply(DEPLOYMENTS, self.object())?;
        self.template_hash = draw.letters(9);
        self.started = now(simulator);
        while self.pods.len() < self.replicas {
            self.add_pod(simulator, &deployment, draw)?;
        }
        for index in 0..self.pods.len() {
            self.run_pod(simulator, index, draw)?;
        }
        self.write_status(simulator, &deployment)
    }

    /// A new image.
    pub(super) fn begin(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        self.revision += 1;
        self.template_hash = draw.letters(9);
        self.started = now(simulator);
        self.completed = None;
        let whole = self.object();
        let patch = json!({
            "metadata": {"annotations": whole["metadata"]["annotations"]},
            "spec": {"template": {"spec": {"containers": whole["spec"]["template"]["spec"]["containers"]}}},
        });
        patch_or_restore(simulator, (DEPLOYMENTS, Part::Main), whole, &patch)
    }

    /// One thing of what is left to do: a Pod starts to run, one too many goes, a new one comes. If nothing is, a container
    /// may start anew.
    pub(super) fn step(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        let deployment = match simulator.get(DEPLOYMENTS, self.namespace, self.name) {
            Some(deployment) => deployment,
            None => simulator.apply(DEPLOYMENTS, self.object())?,
        };
        // Somebody may have scaled it.
        if let Some(replicas) = deployment["spec"]["replicas"].as_u64() {
            self.replicas = usize::try_from(replicas).unwrap_or(usize::MAX);
        }
        let namespace = self.namespace;
        self.pods
            .retain(|pod| simulator.get_raw("pods", namespace, &pod.name).is_some());
        let old = self.pods.iter().position(|pod| pod.revision < self.revision);
        let starting = self.pods.iter().position(|pod| !pod.is_running());
        if let Some(starting) = starting {
            self.run_pod(simulator, starting, draw)?;
        } else if self.pods.len() > self.replicas {
            let leaving = self.pods.remove(old.unwrap_or(self.pods.len() - 1));
            unless_gone(simulator.delete("pods", namespace, &leaving.name))?;
        } else if self.pods.len() < self.replicas || old.is_some() {
            self.add_pod(simulator, &deployment, draw)?;
        } else if draw.below(RESTART) == 0 {
            self.restart_pod(simulator, draw)?;
        }
        self.write_status(simulator, &deployment)
    }

    /// The name of the Pod that has been there longest.
    pub(super) fn oldest_pod(&self) -> Option<&str> {
        self.pods.first().map(|pod| pod.name.as_str())
    }

    fn object(&self) -> Value {
        let labels = self.labels();
        json!({
            "metadata": {
                "name": self.name,
                "namespace": self.namespace,
                "labels": labels,
                "annotations": {"deployment.kubernetes.io/revision": self.revision.to_string()},
            },
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
        })
    }

    fn labels(&self) -> Value {
        json!({"app.kubernetes.io/name": self.name, "app.kubernetes.io/part-of": "shop"})
    }

    fn image(&self) -> String {
        format!("registry.example.com/{}:1.{}", self.name, self.revision)
    }

    fn add_pod(
        &mut self,
        simulator: &Simulator,
        deployment: &Value,
        draw: &mut Draw,
    ) -> Result<(), WriteError> {
        let pod = Pod {
            name: format!("{}-{}-{}", self.name, self.template_hash, draw.letters(5)),
            revision: self.revision,
            restarts: 0,
            state: PodState::Starting {
                since: now(simulator),
            },
        };
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
                    "uid": deployment["metadata"]["uid"],
                    "controller": true,
                    "blockOwnerDeletion": true,
                }],
            },
            "spec": {
                "containers": [{"name": self.name, "image": self.image(), "imagePullPolicy": "IfNotPresent"}],
                "restartPolicy": "Always",
                "nodeName": node::draw_name(draw),
            },
            "status": pod.status(self.name),
        });
        simulator.apply("pods", object)?;
        self.pods.push(pod);
        Ok(())
    }

    fn run_pod(&mut self, simulator: &Simulator, index: usize, draw: &mut Draw) -> Result<(), WriteError> {
        let Some(pod) = self.pods.get_mut(index) else {
            return Ok(());
        };
        pod.state = PodState::Running {
            since: now(simulator),
            address: format!("10.0.{}.{}", draw.below(3) + 1, draw.below(250) + 2),
        };
        self.write_pod_status(simulator, index)
    }

    fn restart_pod(&mut self, simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
        let index = draw.index(self.pods.len());
        let Some(pod) = self.pods.get_mut(index) else {
            return Ok(());
        };
        pod.restarts += 1;
        self.write_pod_status(simulator, index)
    }

    fn write_pod_status(&self, simulator: &Simulator, index: usize) -> Result<(), WriteError> {
        let Some(pod) = self.pods.get(index) else {
            return Ok(());
        };
        let patch = json!({"status": pod.status(self.name)});
        let patched = simulator.patch_status("pods", self.namespace, &pod.name, &patch);
        // If it is gone, the next step sees to that.
        unless_gone(patched.map(drop)).map(drop)
    }

    fn write_status(&mut self, simulator: &Simulator, deployment: &Value) -> Result<(), WriteError> {
        let ready = self.pods.iter().filter(|pod| pod.is_running()).count();
        let updated = self
            .pods
            .iter()
            .filter(|pod| pod.revision == self.revision)
            .count();
        let done = ready >= self.replicas && updated == self.replicas && self.pods.len() == self.replicas;
        if done && self.completed.is_none() {
            self.completed = Some(now(simulator));
        }
        if self.available.since.is_empty() || self.available.holds != (ready >= self.replicas) {
            self.available = Available {
                holds: ready >= self.replicas,
                since: now(simulator),
            };
        }
        let status = json!({"status": {
            "observedGeneration": deployment["metadata"]["generation"],
            "replicas": self.pods.len(),
            "updatedReplicas": updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": unless_zero(self.pods.len().max(self.replicas) - ready),
            "conditions": [self.available.condition(), self.progress()],
        }});
        // Whoever deletes it gets it back at the next step.
        let patched = simulator.patch_status(DEPLOYMENTS, self.namespace, self.name, &status);
        unless_gone(patched.map(drop)).map(drop)
    }

    fn progress(&self) -> Value {
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
        progress
    }
}

impl Available {
    fn condition(&self) -> Value {
        let (reason, message) = if self.holds {
            ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        } else {
            (
                "MinimumReplicasUnavailable",
                "Deployment does not have minimum availability.",
            )
        };
        condition("Available", self.holds, reason, message, &self.since)
    }
}

impl Pod {
    fn is_running(&self) -> bool {
        match self.state {
            PodState::Starting { .. } => false,
            PodState::Running { .. } => true,
        }
    }

    fn status(&self, container: &str) -> Value {
        match &self.state {
            PodState::Starting { since } => json!({
                "phase": "Pending",
                "conditions": [
                    condition("Ready", false, "ContainersNotReady", "containers are starting", since),
                ],
                "containerStatuses": [{
                    "name": container,
                    "ready": false,
                    "restartCount": self.restarts,
                    "state": {"waiting": {"reason": "ContainerCreating"}},
                }],
            }),
            PodState::Running { since, address } => json!({
                "phase": "Running",
                "conditions": [condition("Ready", true, "", "", since)],
                "podIP": address,
                "startTime": since,
                "containerStatuses": [{
                    "name": container,
                    "ready": true,
                    "restartCount": self.restarts,
                    "state": {"running": {"startedAt": since}},
                }],
            }),
        }
    }
}

/// Nothing where there are none, as the field is left out then; a merge patch removes what is `null`.
fn unless_zero(count: usize) -> Option<usize> {
    (count > 0).then_some(count)
}
