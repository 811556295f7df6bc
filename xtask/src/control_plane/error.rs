//! What can go wrong with a control plane, and what to do then.

use std::path::PathBuf;

use super::certificates::CertificateError;
use super::cluster::{READY_WITHIN, kubeconfig_in};
use super::record::{Component, RecordError};
use crate::files::FileError;
use crate::process::ProcessError;

/// A control plane could not be started, found or ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    /// One runs in this folder already.
    #[error(
        "a control plane runs already, with {}; use it, or end it first with: cargo xtask control-plane down --state {}",
        kubeconfig_in(.0).display(), .0.display()
    )]
    AlreadyUp(PathBuf),
    /// The folder holds something else, which is not ours to remove.
    #[error("{} is neither empty nor a state folder of a control plane; name another with --state", .0.display())]
    Foreign(PathBuf),
    /// A process ended on its own.
    #[error("{component} ended while it started; the end of {} says:\n{tail}", log.display())]
    Died {
        /// Which.
        component: Component,
        /// Its log.
        log: PathBuf,
        /// The last lines of it.
        tail: String,
    },
    /// The API server did not become ready.
    #[error("the API server is not ready after {} s ({last}); its log: {}", READY_WITHIN.as_secs(), log.display())]
    NotReady {
        /// What the last question was answered.
        last: String,
        /// Its log.
        log: PathBuf,
    },
    /// No port is free.
    #[error("no free port on 127.0.0.1")]
    NoPort(#[source] std::io::Error),
    /// Keys could not be made.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The folder's record cannot be used.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A program is missing, failed, or could not be ended.
    #[error(transparent)]
    Process(#[from] ProcessError),
}
