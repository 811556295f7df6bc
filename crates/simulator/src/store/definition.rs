//! Custom resources that a `CustomResourceDefinition` brings and takes away.

use serde_json::Value;

use crate::resource::{Resource, ResourceKey};

use super::{
    Store,
    event::{Change, Event},
};

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

impl Store {
    /// Serves what a definition defines, or ceases to, as a change of the definition says.
    pub(super) fn follow_definition(&mut self, key: &ResourceKey, event: &Event) {
        if key.group != GROUP || key.plural != PLURAL {
            return;
        }
        for resource in defined(&event.object.object) {
            match event.change {
                Change::Added | Change::Modified => self.register(resource),
                Change::Deleted => {
                    self.unregister(&resource.key());
                }
            }
        }
    }
}

/// The served versions of a definition
/// (<https://kubernetes.io/docs/reference/kubernetes-api/extend-resources/custom-resource-definition-v1/>).
fn defined(definition: &[u8]) -> Vec<Resource> {
    let Ok(definition) = serde_json::from_slice::<Value>(definition) else {
        return Vec::new();
    };
    let spec = &definition["spec"];
    let (Some(group), Some(plural), Some(kind)) = (
        spec["group"].as_str(),
        spec["names"]["plural"].as_str(),
        spec["names"]["kind"].as_str(),
    ) else {
        return Vec::new();
    };
    let versions = spec["versions"].as_array().into_iter().flatten();
    versions
        .filter(|version| version["served"] == true)
        .filter_map(|version| {
            let mut resource = Resource::custom(group, version["name"].as_str()?, plural, kind);
            if spec["scope"] == "Cluster" {
                resource = resource.cluster_scoped();
            }
            if !version["subresources"]["status"].is_object() {
                resource = resource.without_status();
            }
            Some(resource)
        })
        .collect()
}
