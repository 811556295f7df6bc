//! What the workload's programs are configured with: ConfigMaps, Secrets that rotate, and Services.

use serde_json::{Value, json};

use crate::{draw::Draw, simulator::Simulator, store::WriteError};

use super::{Part, SHOP, TEAM, patch_or_restore};

/// A flag changes every so many steps.
const FLIP: u64 = 5;

/// Prices change every so many steps.
const PRICING: u64 = 3;

/// A Secret rotates every so many steps.
const ROTATION: u64 = 20;

pub(super) fn seed(simulator: &Simulator, draw: &mut Draw) -> Result<(), WriteError> {
    let settings = json!({
        "banner": "Free delivery above 40 €",
        "currency": "EUR",
        "log-level": "info",
        "page.html": "<h1>Shop & more</h1>",
    });
    for object in [
        config_map(SHOP, "settings", &settings),
        counters(),
        feature_flags(),
        prices(),
        config_map(
            TEAM,
            "worker-config",
            &json!({"concurrency": "4", "queue": "orders"}),
        ),
    ] {
        simulator.apply("configmaps", object)?;
    }
    for (namespace, name) in [(SHOP, "db"), (SHOP, "payment-api"), (TEAM, "queue")] {
        simulator.apply("secrets", credentials(namespace, name, draw))?;
    }
    let certificate = json!({
        "metadata": {"name": "web-tls", "namespace": SHOP},
        "stringData": {"tls.crt": draw.letters(64), "tls.key": draw.letters(64)},
        "type": "kubernetes.io/tls",
    });
    simulator.apply("secrets", certificate)?;
    for (index, (name, port)) in (20..).zip([("web", 80), ("cart", 8080), ("search", 8081)]) {
        let spec = json!({
            "clusterIP": format!("10.96.4.{index}"),
            "ports": [{"name": "http", "protocol": "TCP", "port": port, "targetPort": 8080}],
            "selector": {"app.kubernetes.io/name": name},
            "type": "ClusterIP",
        });
        let metadata = json!({"name": name, "namespace": SHOP});
        let status = json!({"loadBalancer": {}});
        simulator.apply(
            "services",
            json!({"metadata": metadata, "spec": spec, "status": status}),
        )?;
    }
    Ok(())
}

pub(super) fn step(simulator: &Simulator, step: u64, draw: &mut Draw) -> Result<(), WriteError> {
    let config_maps = ("configmaps", Part::Main);
    let counted = json!({"data": {"orders": step.to_string()}});
    patch_or_restore(simulator, config_maps, counters(), &counted)?;
    if step.is_multiple_of(FLIP) {
        let flag = (step / FLIP).is_multiple_of(2).to_string();
        let flipped = json!({"data": {"new-checkout": flag}});
        patch_or_restore(simulator, config_maps, feature_flags(), &flipped)?;
    }
    if step.is_multiple_of(PRICING) {
        let priced = json!({"data": {"apple": format!("0.{}", 30 + draw.below(40))}});
        patch_or_restore(simulator, config_maps, prices(), &priced)?;
    }
    if step.is_multiple_of(ROTATION) {
        let rotated = json!({"stringData": {"password": draw.letters(16)}});
        let whole = credentials(SHOP, "db", draw);
        patch_or_restore(simulator, ("secrets", Part::Main), whole, &rotated)?;
    }
    Ok(())
}

fn counters() -> Value {
    config_map(SHOP, "counters", &json!({"orders": "0"}))
}

fn feature_flags() -> Value {
    config_map(
        SHOP,
        "feature-flags",
        &json!({"new-checkout": "false", "search-beta": "true"}),
    )
}

fn prices() -> Value {
    config_map(SHOP, "prices", &json!({"apple": "0.30", "bread": "3.10"}))
}

fn config_map(namespace: &str, name: &str, data: &Value) -> Value {
    let labels = json!({"app.kubernetes.io/part-of": "shop"});
    json!({"metadata": {"name": name, "namespace": namespace, "labels": labels}, "data": data})
}

fn credentials(namespace: &str, name: &str, draw: &mut Draw) -> Value {
    json!({
        "metadata": {"name": name, "namespace": namespace, "annotations": {"team": "shop"}},
        "stringData": {"user": format!("app-{}", draw.letters(8)), "password": draw.letters(16)},
        "type": "Opaque",
    })
}
