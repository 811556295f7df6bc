//! What the workload promises.

use std::time::{Duration, UNIX_EPOCH};

use super::*;

async fn seeded(configmaps: usize) -> (Simulator, Workload) {
    let clock = || UNIX_EPOCH + Duration::from_secs(1_795_971_291);
    let simulator = Simulator::builder().seed(1).clock(clock).start().await.unwrap();
    let mut workload = Workload::new(7).with_configmaps(configmaps, 2_300);
    workload.seed(&simulator).unwrap();
    (simulator, workload)
}

fn everything(simulator: &Simulator) -> Vec<bytes::Bytes> {
    [
        "namespaces",
        "nodes",
        "configmaps",
        "secrets",
        "services",
        "deployments.apps",
        "pods",
        "events",
        "widgets.example.com",
    ]
    .iter()
    .flat_map(|resource| simulator.objects(resource))
    .collect()
}

#[tokio::test]
async fn the_same_seed_and_steps_give_the_same_cluster() {
    let (one, mut first) = seeded(5).await;
    let (other, mut second) = seeded(5).await;
    assert_eq!(everything(&one), everything(&other));
    first.step(&one, 120).unwrap();
    for _ in 0..120 {
        second.step(&other, 1).unwrap();
    }
    assert_eq!(everything(&one), everything(&other));
    assert_eq!(first.steps_taken(), 120);
}

#[tokio::test]
async fn rollouts_replace_all_pods_and_come_to_an_end() {
    let (simulator, mut workload) = seeded(0).await;
    let pods = |image: &str| {
        let pods = simulator.objects("pods");
        pods.iter()
            .filter(|pod| String::from_utf8_lossy(pod).contains(image))
            .count()
    };
    assert_eq!((pods("web:1.1\""), pods("web:1.2\"")), (3, 0));
    let mut seen_unfinished = false;
    for _ in 0..47 {
        workload.step(&simulator, 1).unwrap();
        let status = &simulator.get("deployments.apps", "shop", "web").unwrap()["status"];
        seen_unfinished |= status["updatedReplicas"] != status["replicas"];
        assert!(
            status["readyReplicas"].as_u64().unwrap() >= 3,
            "never fewer than wanted"
        );
    }
    assert!(seen_unfinished);
    assert_eq!((pods("web:1.1\""), pods("web:1.2\"")), (0, 3));
    let web = simulator.get("deployments.apps", "shop", "web").unwrap();
    assert_eq!(web["status"]["observedGeneration"], web["metadata"]["generation"]);
    assert_eq!(web["status"]["conditions"][1]["reason"], "NewReplicaSetAvailable");
}

#[tokio::test]
async fn the_cluster_stays_small_however_long_it_runs() {
    let (simulator, mut workload) = seeded(0).await;
    workload.step(&simulator, 300).unwrap();
    assert!(everything(&simulator).len() < 80);
    let secret = simulator.get("secrets", "shop", "db").unwrap();
    assert!(secret["data"]["password"].is_string());
}

#[tokio::test]
async fn bulk_objects_have_their_size_and_change_one_by_one() {
    let (simulator, mut workload) = seeded(50).await;
    let sizes: Vec<usize> = simulator
        .objects("configmaps")
        .iter()
        .filter(|object| String::from_utf8_lossy(object).contains("\"bulk\""))
        .map(bytes::Bytes::len)
        .collect();
    assert_eq!(sizes.len(), 50);
    assert!(
        sizes.iter().all(|size| (2_280..2_320).contains(size)),
        "{sizes:?}"
    );
    let before: u64 = simulator.resource_version().parse().unwrap();
    workload.change_configmaps(&simulator, 200).unwrap();
    assert_eq!(simulator.resource_version(), (before + 200).to_string());
}

fn pod_names(simulator: &Simulator, app: &str) -> Vec<String> {
    let pods = simulator.objects("pods");
    let pods = pods
        .iter()
        .map(|pod| serde_json::from_slice::<Value>(pod).unwrap());
    pods.filter(|pod| pod["metadata"]["labels"]["app.kubernetes.io/name"] == app)
        .map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn what_somebody_deletes_comes_back_or_is_replaced() {
    let (simulator, mut workload) = seeded(2).await;
    // All of it, again and again: no step is refused.
    for _ in 0..60 {
        for resource in [
            "nodes",
            "configmaps",
            "secrets",
            "deployments.apps",
            "pods",
            "events",
            "widgets.example.com",
        ] {
            for object in simulator.objects(resource) {
                let object: Value = serde_json::from_slice(&object).unwrap();
                let place = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
                simulator
                    .delete(resource, place("namespace"), place("name"))
                    .unwrap();
            }
        }
        workload.step(&simulator, 1).unwrap();
        workload.change_configmaps(&simulator, 1).unwrap();
    }
    workload.step(&simulator, 60).unwrap();
    for (resource, name) in [
        ("configmaps", "counters"),
        ("configmaps", "feature-flags"),
        ("configmaps", "prices"),
        ("secrets", "db"),
        ("deployments.apps", "web"),
    ] {
        assert!(
            simulator.get(resource, "shop", name).is_some(),
            "{resource} {name}"
        );
    }
    assert!(simulator.get("nodes", "", "node-2").is_some());
    assert_eq!(pod_names(&simulator, "web").len(), 3);
    assert!(simulator.objects("widgets.example.com").len() >= 3);
    let web = simulator.get("deployments.apps", "shop", "web").unwrap();
    assert_eq!(web["status"]["readyReplicas"], 3);
    assert_eq!(web["status"]["conditions"][0]["status"], "True");
}

#[tokio::test]
async fn a_deployment_that_is_scaled_gets_its_pods() {
    let (simulator, mut workload) = seeded(0).await;
    for replicas in [5, 1, 0, 2] {
        let scaled = json!({"spec": {"replicas": replicas}});
        simulator
            .patch("deployments.apps", "shop", "web", &scaled)
            .unwrap();
        workload.step(&simulator, 20).unwrap();
        assert_eq!(pod_names(&simulator, "web").len(), replicas);
        let status = &simulator.get("deployments.apps", "shop", "web").unwrap()["status"];
        assert_eq!(status["readyReplicas"], replicas);
        assert!(status.get("unavailableReplicas").is_none(), "{status}");
    }
}

#[tokio::test]
async fn the_pods_of_a_job_start_succeed_and_go() {
    let (simulator, mut workload) = seeded(0).await;
    workload.step(&simulator, 1).unwrap();
    let [name] = &pod_names(&simulator, "report")[..] else {
        panic!("one report");
    };
    let mut phases = Vec::new();
    while let Some(pod) = simulator.get("pods", "shop", name) {
        phases.push(pod["status"]["phase"].as_str().unwrap().to_owned());
        workload.step(&simulator, 1).unwrap();
    }
    phases.dedup();
    assert_eq!(phases, ["Pending", "Running", "Succeeded"]);
    assert_eq!(pod_names(&simulator, "report").len(), 2);
}

#[tokio::test]
async fn a_step_changes_a_few_objects_only() {
    let (simulator, mut workload) = seeded(0).await;
    let version = || simulator.resource_version().parse::<u64>().unwrap();
    for step in 1..=100 {
        let before = version();
        workload.step(&simulator, 1).unwrap();
        let changes = version() - before;
        assert!((2..=16).contains(&changes), "{changes} at step {step}");
    }
}
