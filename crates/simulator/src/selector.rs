//! Label selectors and field selectors, parsed as Kubernetes parses them, with its messages.

mod field;
mod label;
mod lexer;

pub(crate) use field::{FieldSelector, FieldSelectorError};
pub(crate) use label::LabelSelector;
