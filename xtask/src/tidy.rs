//! `cargo xtask tidy`: the rules that neither the compiler nor clippy knows.
//!
//! - [`edges`]: which crate may depend on which, and what may not be below it;
//! - [`manifests`]: what every `Cargo.toml`, README and the change log must have;
//! - [`sources`]: the form of files, and words that do not belong into them;
//! - [`public_api`]: whether the lists of public items are what the sources have.
//!
//! It runs as an ordinary test too, so `cargo test --workspace` fails where this command would.

mod edges;
mod manifests;
mod sources;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::files::{self, FileError};
use crate::public_api::{self, PublicApiError};
use crate::workspace::{self, WorkspaceError};

/// The workspace could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TidyError {
    /// Cargo could not describe it.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A file could not be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The lists of public items cannot be made.
    #[error(transparent)]
    PublicApi(#[from] PublicApiError),
    /// A manifest is not TOML.
    #[error("{} is not TOML: {reason}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        reason: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
}

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    weight: Weight,
    /// Relative to the workspace.
    path: PathBuf,
    /// Counted from 1; none where the file as a whole is meant.
    line: Option<usize>,
    message: String,
}

impl Finding {
    fn error(path: &Path, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self {
            weight: Weight::Error,
            path: path.to_owned(),
            line: line.into(),
            message: message.into(),
        }
    }

    fn warning(path: &Path, line: impl Into<Option<usize>>, message: impl Into<String>) -> Self {
        Self {
            weight: Weight::Warning,
            ..Self::error(path, line, message)
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Error => "error",
            Weight::Warning => "warning",
        };
        write!(formatter, "{weight}: {}", self.path.display())?;
        if let Some(line) = self.line {
            write!(formatter, ":{line}")?;
        }
        write!(formatter, ": {}", self.message)
    }
}

/// Checks everything, prints what is wrong, and fails if anything more than a warning was found.
///
/// # Errors
///
/// When the workspace cannot be read.
pub(crate) fn run() -> Result<ExitCode, TidyError> {
    let findings = check(&workspace::root())?;
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings
        .iter()
        .filter(|finding| finding.weight == Weight::Error)
        .count();
    println!("tidy: {errors} errors, {} warnings", findings.len() - errors);
    Ok(if errors == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check(root: &Path) -> Result<Vec<Finding>, TidyError> {
    let graph = edges::Graph::read(root)?;
    let mut findings = edges::check(&graph);
    findings.extend(manifests::check(root, &graph.members())?);
    for path in public_api::stale(root)? {
        let message =
            "this is not what the sources offer; run cargo xtask public-api, and look at the difference";
        findings.push(Finding::error(&path, None, message));
    }
    for path in sources::list(root)? {
        // Whether a file is text shows when it is read; what is not is not ours to judge.
        if let Ok(text) = files::read(&root.join(&path)) {
            findings.extend(sources::check(&path, &text));
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = check(&workspace::root()).unwrap();
        let errors: Vec<String> = findings
            .iter()
            .filter(|finding| finding.weight == Weight::Error)
            .map(Finding::to_string)
            .collect();
        assert!(
            errors.is_empty(),
            "cargo xtask tidy finds:\n{}",
            errors.join("\n")
        );
    }

    #[test]
    fn a_finding_names_its_place() {
        let path = Path::new("crates/x/src/lib.rs");
        assert_eq!(
            Finding::error(path, 7, "wrong").to_string(),
            "error: crates/x/src/lib.rs:7: wrong"
        );
        assert_eq!(
            Finding::warning(path, None, "odd").to_string(),
            "warning: crates/x/src/lib.rs: odd"
        );
    }
}
