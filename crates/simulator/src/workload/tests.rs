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
    assert!(everything(&simulator).len() < 60);
    let secret = simulator.get("secrets", "shop", "db").unwrap();
    assert!(secret["data"]["password"].is_string());
}

#[tokio::test]
async fn bulk_objects_have_their_size_and_change_one_by_one() {
    let (simulator, mut workload) = seeded(50).await;
    let sizes: Vec<usize> = simulator
        .objects("configmaps")
        .iter()
        .filter(|object| String::from_utf8_lossy(object).contains("\"load\""))
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
