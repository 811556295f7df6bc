//! The schema of conditions, which are a type of the status crate.

use krm_stream_status::MESSAGE_BYTES;
use schemars::{Schema, SchemaGenerator, json_schema};

/// The schema that the [API conventions](https://pkg.go.dev/k8s.io/apimachinery/pkg/apis/meta/v1#Condition) give to a
/// list of conditions.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "The name of the condition.",
                    "type": "string",
                    "maxLength": 316,
                    "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
                },
                "status": {
                    "description": "Whether it holds.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "observedGeneration": {
                    "description": "The generation that was looked at.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
                "lastTransitionTime": {
                    "description": "When the status last became another.",
                    "type": "string",
                    "format": "date-time",
                },
                "reason": {
                    "description": "Why, in one word.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                },
                "message": {
                    "description": "Why, for people.",
                    "type": "string",
                    "maxLength": MESSAGE_BYTES,
                },
            },
        },
    })
}
