//! Label selectors by Kubernetes' grammar, in canonical order.

/// A label selector in canonical form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelSelector {
    canonical: Box<str>,
}

impl LabelSelector {
    /// The canonical spelling.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }
}
