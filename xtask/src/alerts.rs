//! `cargo xtask alerts`: the alert rules by Prometheus' own tests, with the promtool of `PATH` or one from Debian's package.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::files::{self, FileError};
use crate::process::{self, ProcessError};
use crate::workspace::{self, WorkspaceError};

/// Debian's package with promtool in it. It is unpacked, not installed: installed, it would start a server.
const PACKAGE: &str = "prometheus";
const IN_PACKAGE: &str = "usr/bin/promtool";

/// The alert rules fail their tests, or could not be tested.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AlertsError {
    /// There is neither promtool nor a way to get it.
    #[error(
        "promtool is not on PATH, and there is no apt-get to fetch it with; install Prometheus (brew install prometheus, or \
         prometheus.io/download) and put its promtool on PATH"
    )]
    Absent,
    /// The package could not be had.
    #[error(
        "promtool is not on PATH, and Debian's package {PACKAGE} cannot be fetched; run apt-get update and try again, or put \
         promtool on PATH"
    )]
    Fetch(#[source] ProcessError),
    /// The package could not be unpacked, or has no promtool.
    #[error("Debian's package {PACKAGE} cannot be unpacked")]
    Unpack(#[source] ProcessError),
    /// The package has no file of this name, or there is not one package.
    #[error("apt-get fetched no package with {IN_PACKAGE} in it; put promtool on PATH")]
    NotInPackage,
    /// There is no cache folder.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The cache cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// promtool found something, and has said what.
    #[error("the alert rules are not in order")]
    Rules(#[source] ProcessError),
}

/// Checks the rules' form, then runs their tests.
///
/// # Errors
///
/// When a rule fails, or promtool cannot be had.
pub(crate) fn run() -> Result<ExitCode, AlertsError> {
    let promtool = promtool()?;
    let folder = workspace::root().join("deploy/monitoring");
    for (what, file) in [("check", "alerts.yaml"), ("test", "alerts.test.yaml")] {
        let mut command = Command::new(&promtool);
        command.args([what, "rules", file]).current_dir(&folder);
        process::run(&mut command).map_err(AlertsError::Rules)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn promtool() -> Result<PathBuf, AlertsError> {
    if let Some(installed) = process::look_up("promtool") {
        return Ok(installed);
    }
    let cache = workspace::cache()?.join("promtool");
    let promtool = cache.join("promtool");
    if !promtool.is_file() {
        if process::look_up("apt-get").is_none() || process::look_up("dpkg-deb").is_none() {
            return Err(AlertsError::Absent);
        }
        files::create_folder(&cache)?;
        fetch(&cache, &promtool)?;
    }
    Ok(promtool)
}

/// Puts promtool there, by a rename of the finished file.
fn fetch(cache: &Path, promtool: &Path) -> Result<(), AlertsError> {
    eprintln!("fetching promtool, once; it stays in {}", cache.display());
    let folder = tempfile::tempdir_in(cache).map_err(files::naming("create a folder in", cache))?;
    let folder = folder.path();
    let mut download = Command::new("apt-get");
    // As root, apt would fetch as a user of its own, who may not write here.
    download
        .args([
            "-qq",
            "-o",
            "APT::Sandbox::User=root",
            "-o",
            "Acquire::Retries=5",
            "download",
            PACKAGE,
        ])
        .current_dir(folder);
    process::output(&mut download).map_err(AlertsError::Fetch)?;
    let package = package(folder)?.ok_or(AlertsError::NotInPackage)?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(package).arg(folder);
    process::output(&mut unpack).map_err(AlertsError::Unpack)?;
    let unpacked = folder.join(IN_PACKAGE);
    if !unpacked.is_file() {
        return Err(AlertsError::NotInPackage);
    }
    Ok(files::rename(&unpacked, promtool)?)
}

/// The one package of a folder.
fn package(folder: &Path) -> Result<Option<PathBuf>, FileError> {
    let entries = std::fs::read_dir(folder).map_err(files::naming("list", folder))?;
    let mut found = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "deb"));
    let first = found.next();
    Ok(first.filter(|_| found.next().is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_package_of_a_folder_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert_eq!(package(path).unwrap(), None);
        let one = path.join("prometheus_1.deb");
        for file in ["prometheus_1.deb", "notes.txt"] {
            std::fs::write(path.join(file), "").unwrap();
        }
        assert_eq!(package(path).unwrap(), Some(one));
        std::fs::write(path.join("prometheus_2.deb"), "").unwrap();
        assert_eq!(package(path).unwrap(), None);
    }
}
