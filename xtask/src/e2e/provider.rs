//! Where the API server of the tests comes from, and why.

use std::path::PathBuf;
use std::process::Command;

use crate::process;

/// A source of API servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Provider {
    /// A cluster in containers, by kind.
    Kind,
    /// kube-apiserver and etcd as plain processes.
    ControlPlane,
    /// A cluster that exists.
    Kubeconfig,
}

/// A provider that can be used here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// kind works here.
    Kind {
        /// Why this one.
        reason: String,
    },
    /// The control plane as processes.
    ControlPlane {
        /// Why this one.
        reason: String,
    },
    /// The cluster of a kubeconfig.
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// Why this one.
        reason: String,
    },
}

/// The provider that was asked for cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProviderError {
    /// kind was asked for and does not work.
    #[error("kind cannot be used here: {0}; use --provider control-plane, which needs no containers")]
    KindDoesNotWork(String),
    /// No kubeconfig was named.
    #[error(
        "--provider kubeconfig needs a file: name it with --kubeconfig PATH, or set KUBECONFIG to one file"
    )]
    NoKubeconfig,
    /// The kubeconfig is not there.
    #[error("{} is no file; name a kubeconfig with --kubeconfig PATH", .0.display())]
    KubeconfigAbsent(PathBuf),
    /// Two wishes that exclude each other.
    #[error("--kubeconfig is for --provider kubeconfig; leave one of the two flags out")]
    Contradiction,
}

impl Choice {
    /// The provider's name on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Kind { .. } => "kind",
            Self::ControlPlane { .. } => "control-plane",
            Self::Kubeconfig { .. } => "kubeconfig",
        }
    }

    /// What is used and why, and what was not run.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Kind { reason } => format!("provider kind: {reason}"),
            Self::ControlPlane { reason } => format!("provider control-plane: {reason}"),
            Self::Kubeconfig { path, reason } => format!("provider kubeconfig {}: {reason}", path.display()),
        }
    }
}

/// Chooses by the flags, else by what works on this machine.
///
/// # Errors
///
/// When the one that was asked for cannot be used.
pub(crate) fn choose(wish: Option<Provider>, file: Option<PathBuf>) -> Result<Choice, ProviderError> {
    decide(
        wish,
        file,
        std::env::var_os("KUBECONFIG").map(PathBuf::from),
        kind_works,
    )
}

fn decide(
    wish: Option<Provider>,
    file: Option<PathBuf>,
    from_environment: Option<PathBuf>,
    kind_works: impl FnOnce() -> Result<(), String>,
) -> Result<Choice, ProviderError> {
    match (wish, file) {
        (Some(Provider::Kind | Provider::ControlPlane), Some(_)) => Err(ProviderError::Contradiction),
        (None | Some(Provider::Kubeconfig), Some(path)) => existing(path, "named by --kubeconfig"),
        (Some(Provider::Kubeconfig), None) => existing(
            from_environment.ok_or(ProviderError::NoKubeconfig)?,
            "named by KUBECONFIG",
        ),
        (Some(Provider::ControlPlane), None) => Ok(Choice::ControlPlane {
            reason: "asked for; kind was not run".to_owned(),
        }),
        (Some(Provider::Kind), None) => match kind_works() {
            Ok(()) => Ok(Choice::Kind {
                reason: "asked for".to_owned(),
            }),
            Err(reason) => Err(ProviderError::KindDoesNotWork(reason)),
        },
        (None, None) => Ok(match kind_works() {
            Ok(()) => Choice::Kind {
                reason: "docker and kind work here".to_owned(),
            },
            Err(reason) => Choice::ControlPlane {
                reason: format!("kind was not run, because {reason}"),
            },
        }),
    }
}

fn existing(path: PathBuf, reason: &str) -> Result<Choice, ProviderError> {
    if path.is_file() {
        // The tests run in another folder.
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Choice::Kubeconfig {
            path,
            reason: format!("{reason}; kind was not run"),
        })
    } else {
        Err(ProviderError::KubeconfigAbsent(path))
    }
}

/// Whether docker's daemon answers and kind is installed; the error is why not.
fn kind_works() -> Result<(), String> {
    if process::look_up("docker").is_none() {
        return Err("docker is not installed".to_owned());
    }
    // `docker info` succeeds in some versions although no daemon answers, unless it has to print something of it.
    let server = process::output(Command::new("docker").args(["info", "--format", "{{.ServerVersion}}"]));
    if !server.is_ok_and(|version| !version.trim().is_empty()) {
        return Err("no docker daemon answers `docker info`".to_owned());
    }
    if process::look_up("kind").is_none() {
        return Err("kind is not installed".to_owned());
    }
    process::output(Command::new("kind").arg("version")).map_err(|error| error.to_string())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unasked() -> Result<(), String> {
        panic!("kind was looked for without need")
    }

    #[test]
    fn kind_is_the_default_where_it_works() {
        let choice = decide(None, None, None, || Ok(())).unwrap();
        assert_eq!(choice.reason(), "provider kind: docker and kind work here");
    }

    #[test]
    fn the_control_plane_stands_in_and_says_why_kind_was_not_run() {
        let choice = decide(None, None, Some("/other".into()), || {
            Err("docker is not installed".to_owned())
        })
        .unwrap();
        assert_eq!(choice.name(), "control-plane");
        assert_eq!(
            choice.reason(),
            "provider control-plane: kind was not run, because docker is not installed"
        );
    }

    #[test]
    fn kind_asked_for_where_it_does_not_work_is_an_error_that_names_the_other_way() {
        let error = decide(Some(Provider::Kind), None, None, || {
            Err("no docker daemon".to_owned())
        })
        .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("no docker daemon; use --provider control-plane"),
            "{error}"
        );
    }

    #[test]
    fn a_named_kubeconfig_decides_and_must_exist() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_owned();
        let choice = decide(None, Some(path.clone()), None, unasked).unwrap();
        assert_eq!(choice.name(), "kubeconfig");
        assert_eq!(
            decide(Some(Provider::Kubeconfig), None, Some(path.clone()), unasked)
                .unwrap()
                .name(),
            "kubeconfig"
        );
        assert_eq!(
            decide(Some(Provider::Kubeconfig), None, None, unasked),
            Err(ProviderError::NoKubeconfig)
        );
        assert_eq!(
            decide(Some(Provider::Kind), Some(path), None, unasked),
            Err(ProviderError::Contradiction)
        );
        let absent = PathBuf::from("/no/such/kubeconfig");
        assert_eq!(
            decide(None, Some(absent.clone()), None, unasked),
            Err(ProviderError::KubeconfigAbsent(absent))
        );
    }
}
