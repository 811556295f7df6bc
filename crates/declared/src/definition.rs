//! The definition of the resource, as it is given to an API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

use crate::DeclaredStream;

/// Where the generated definition is, relative to this crate's folder.
pub const CRD_FILE: &str = "crd/declaredstreams.krm-stream.github.io.json";

/// The definition, generated from the Rust types.
pub fn custom_resource_definition() -> CustomResourceDefinition {
    DeclaredStream::crd()
}

/// The definition as the text of [`CRD_FILE`]: `kubectl apply --server-side --filename` takes it.
///
/// # Errors
/// Only if the definition had no JSON.
pub fn definition_json() -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(&custom_resource_definition())?;
    text.push('\n');
    Ok(text)
}
