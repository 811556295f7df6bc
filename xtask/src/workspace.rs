//! Where things are: the workspace, its target folder, the cache outside the tree.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::process::{self, ProcessError};

/// The workspace, or the place for its cache, could not be found.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkspaceError {
    /// Cargo could not describe the workspace.
    #[error("cannot read the workspace through cargo metadata")]
    Metadata {
        /// What cargo said.
        source: ProcessError,
    },
    /// Cargo's description could not be read.
    #[error("cannot read what cargo metadata printed: {0}")]
    Unreadable(String),
    /// There is no folder that a cache could be in.
    #[error("no cache folder: set KRM_CACHE to a folder (HOME and XDG_CACHE_HOME are not set either)")]
    NoCache,
}

/// The folder of the workspace's own `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // Cargo sets the variable for `cargo run` and `cargo test`; a binary that was copied elsewhere and is
    // started by hand finds the tree that it was built from.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    manifest
        .parent()
        .map_or_else(|| manifest.clone(), Path::to_path_buf)
}

/// The folder that cargo builds into, as configuration and environment have it.
pub(crate) fn target() -> Result<PathBuf, WorkspaceError> {
    let metadata = metadata(&["--no-deps", "--offline"])?;
    let target = metadata["target_directory"].as_str();
    target
        .map(PathBuf::from)
        .ok_or_else(|| WorkspaceError::Unreadable("no target_directory".to_owned()))
}

/// `cargo metadata` of the workspace, with more flags.
pub(crate) fn metadata(flags: &[&str]) -> Result<Value, WorkspaceError> {
    let mut command = process::cargo();
    command
        .args(["metadata", "--format-version", "1"])
        .args(flags)
        .current_dir(root());
    // A machine without network should hear so at once.
    command.env("CARGO_NET_RETRY", "0");
    let text = process::output(&mut command).map_err(|source| WorkspaceError::Metadata { source })?;
    serde_json::from_str(&text).map_err(|error| WorkspaceError::Unreadable(error.to_string()))
}

/// The folder for what is expensive to build: `KRM_CACHE`, else `krm-stream` in the user's cache folder.
pub(crate) fn cache() -> Result<PathBuf, WorkspaceError> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    cache_from(set("KRM_CACHE"), set("XDG_CACHE_HOME"), set("HOME")).ok_or(WorkspaceError::NoCache)
}

fn cache_from(own: Option<PathBuf>, user: Option<PathBuf>, home: Option<PathBuf>) -> Option<PathBuf> {
    own.or_else(|| user.map(|folder| folder.join("krm-stream")))
        .or_else(|| home.map(|folder| folder.join(".cache/krm-stream")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_our_own_variable_then_the_users_then_the_homes() {
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(cache_from(path("/a"), path("/b"), path("/c")), path("/a"));
        assert_eq!(cache_from(None, path("/b"), path("/c")), path("/b/krm-stream"));
        assert_eq!(cache_from(None, None, path("/c")), path("/c/.cache/krm-stream"));
        assert_eq!(cache_from(None, None, None), None);
    }

    #[test]
    fn the_root_holds_the_workspace_manifest() {
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        assert!(manifest.contains("[workspace]"));
    }
}
