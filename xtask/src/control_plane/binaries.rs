//! Building kube-apiserver and etcd from their Go modules into the cache.
//!
//! Neither can be had by `go install module@version`, which refuses modules whose `go.mod` replaces others.
//! So each gets a module of our own, generated here, that requires it and calls its entry point. For
//! `k8s.io/kubernetes` the staging modules are replaced by their published versions; which they are is read
//! from its own `go.mod`, where they point into its source tree.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::files::{self, FileError};
use crate::process::{self, ProcessError};
use crate::wait;
use crate::workspace::{self, WorkspaceError};

/// The version of kube-apiserver.
const KUBERNETES: &str = "v1.36.3";
/// The version under which the same release publishes its staging modules.
const STAGING: &str = "v0.36.3";
/// The version of etcd.
const ETCD: &str = "v3.6.13";
/// What the `go.mod` of [`KUBERNETES`] asks for at least.
const GO: (u32, u32) = (1, 26);
const GO_REMEDY: &str =
    "install Go 1.26 or newer (apt-get install golang, brew install go, or go.dev/dl) and put it on PATH";

const ETCD_MAIN: &str = include_str!("../../go/etcd.go");
const APISERVER_MAIN: &str = include_str!("../../go/kube-apiserver.go");

/// Where the built programs are.
#[derive(Debug)]
pub(crate) struct Binaries {
    /// etcd.
    pub(crate) etcd: PathBuf,
    /// kube-apiserver.
    pub(crate) apiserver: PathBuf,
}

/// The control plane could not be built.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BuildError {
    /// There is no cache folder.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// The cache cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// Go is missing, or failed.
    #[error("cannot build the control plane")]
    Go(#[from] ProcessError),
    /// The Go on `PATH` is too old.
    #[error("{found} is too old for kube-apiserver {KUBERNETES}; {GO_REMEDY}")]
    OldGo {
        /// What `go env GOVERSION` says.
        found: String,
    },
    /// Go described a module in a way that is not understood.
    #[error("cannot read what go says about k8s.io/kubernetes {KUBERNETES}: {0}")]
    Unreadable(String),
}

/// Gives the programs from the cache, and builds first what is not there.
///
/// A program appears in the cache by a rename of the finished file; callers at the same time wait for
/// each other.
///
/// # Errors
///
/// When Go is missing or too old, or a module cannot be downloaded or built.
pub(crate) fn build() -> Result<Binaries, BuildError> {
    let cache = workspace::cache()?.join("control-plane");
    let binaries = Binaries {
        etcd: cache.join(format!("etcd-{ETCD}")),
        apiserver: cache.join(format!("kube-apiserver-{KUBERNETES}")),
    };
    if binaries.etcd.is_file() && binaries.apiserver.is_file() {
        return Ok(binaries);
    }
    files::create_folder(&cache)?;
    let lock_path = cache.join("build.lock");
    let lock = std::fs::File::create(&lock_path).map_err(files::naming("open", &lock_path))?;
    lock.lock().map_err(files::naming("lock", &lock_path))?;

    let go = Go::find()?;
    if !binaries.etcd.is_file() {
        go.build(&cache, "etcd", &etcd_module(), ETCD_MAIN, "-s -w", &binaries.etcd)?;
    }
    if !binaries.apiserver.is_file() {
        let module = apiserver_module(&go.staging_modules(&cache)?);
        go.build(
            &cache,
            "kube-apiserver",
            &module,
            APISERVER_MAIN,
            &apiserver_link_flags(),
            &binaries.apiserver,
        )?;
    }
    Ok(binaries)
}

fn etcd_module() -> String {
    format!("module krm-stream/etcd\n\ngo 1.25\n\nrequire go.etcd.io/etcd/server/v3 {ETCD}\n")
}

fn apiserver_module(staging: &[String]) -> String {
    let (major, minor) = GO;
    let replaced: Vec<String> = staging
        .iter()
        .map(|path| format!("\t{path} => {path} {STAGING}\n"))
        .collect();
    let replaced = replaced.concat();
    format!(
        "module krm-stream/kube-apiserver\n\ngo {major}.{minor}\n\n\
         require k8s.io/kubernetes {KUBERNETES}\n\nreplace (\n{replaced})\n"
    )
}

/// Stripped, and with the version that `/version` reports: an unstamped build calls itself `v0.0.0-master`.
fn apiserver_link_flags() -> String {
    let package = "k8s.io/component-base/version";
    let numbers: Vec<&str> = KUBERNETES.trim_start_matches('v').split('.').collect();
    let [major, minor, ..] = numbers.as_slice() else {
        return "-s -w".to_owned();
    };
    format!(
        "-s -w -X {package}.gitVersion={KUBERNETES} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"
    )
}

struct Go {
    program: PathBuf,
}

impl Go {
    fn find() -> Result<Self, BuildError> {
        let program = process::find("go", GO_REMEDY)?;
        let found = process::output(Command::new(&program).args(["env", "GOVERSION"]))?
            .trim()
            .to_owned();
        if version(&found).is_some_and(|version| version < GO) {
            return Err(BuildError::OldGo { found });
        }
        Ok(Self { program })
    }

    fn command(&self, folder: &Path) -> Command {
        let mut go = Command::new(&self.program);
        go.current_dir(folder);
        // No C compiler is needed, and the user's own settings for other modules do not apply to these.
        go.env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=mod")
            .env("GOWORK", "off");
        go
    }

    /// The paths that the `go.mod` of Kubernetes replaces by folders of its own tree.
    fn staging_modules(&self, folder: &Path) -> Result<Vec<String>, BuildError> {
        let module = format!("k8s.io/kubernetes@{KUBERNETES}");
        let downloaded = process::output(self.command(folder).args(["mod", "download", "-json", &module]))?;
        let manifest = json(&downloaded)?["GoMod"].as_str().map(str::to_owned);
        let manifest = manifest.ok_or_else(|| BuildError::Unreadable("no GoMod".to_owned()))?;
        let described = process::output(self.command(folder).args(["mod", "edit", "-json", &manifest]))?;
        let staging = replaced_by_folders(&json(&described)?);
        if staging.is_empty() {
            return Err(BuildError::Unreadable(
                "its go.mod replaces nothing by a folder".to_owned(),
            ));
        }
        Ok(staging)
    }

    fn build(
        &self,
        cache: &Path,
        name: &str,
        module: &str,
        main: &str,
        link_flags: &str,
        binary: &Path,
    ) -> Result<(), BuildError> {
        eprintln!(
            "building {name}, once, in some minutes; the result stays in {}",
            cache.display()
        );
        let seconds = wait::stopwatch();
        let folder = tempfile::Builder::new()
            .prefix(&format!("build-{name}-"))
            .tempdir_in(cache)
            .map_err(files::naming("create a folder in", cache))?;
        files::write(&folder.path().join("go.mod"), module)?;
        files::write(&folder.path().join("main.go"), main)?;
        let built = folder.path().join("program");
        let mut go = self.command(folder.path());
        go.args([
            "build",
            "-p",
            "2",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            link_flags,
            "-o",
        ])
        .arg(&built)
        .arg(".");
        process::run(&mut go)?;
        files::rename(&built, binary)?;
        eprintln!("built {name} in {:.0} s", seconds());
        Ok(())
    }
}

fn json(text: &str) -> Result<Value, BuildError> {
    serde_json::from_str(text).map_err(|error| BuildError::Unreadable(error.to_string()))
}

fn replaced_by_folders(go_mod: &Value) -> Vec<String> {
    let replaced = go_mod["Replace"].as_array().into_iter().flatten();
    let by_folders = replaced.filter(|entry| {
        entry["New"]["Path"]
            .as_str()
            .is_some_and(|path| path.starts_with("./"))
    });
    by_folders
        .filter_map(|entry| entry["Old"]["Path"].as_str().map(str::to_owned))
        .collect()
}

/// Major and minor of `go1.26.8`; development builds have no such form and are not judged.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.strip_prefix("go")?.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_versions_compare_as_numbers() {
        assert_eq!(version("go1.26.8"), Some((1, 26)));
        assert_eq!(version("go1.9"), Some((1, 9)));
        assert_eq!(version("go1.27rc1"), Some((1, 27)));
        assert_eq!(version("devel +1234"), None);
        assert!(version("go1.9") < Some(GO));
    }

    #[test]
    fn only_modules_replaced_by_folders_are_staging_modules() {
        let go_mod = serde_json::json!({"Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/forked", "Version": "v1.0.0"}},
        ]});
        let staging = replaced_by_folders(&go_mod);
        assert_eq!(staging, ["k8s.io/api"]);
        assert!(apiserver_module(&staging).contains("\tk8s.io/api => k8s.io/api v0.36.3\n"));
    }

    #[test]
    fn the_server_reports_the_version_that_it_is() {
        assert!(
            apiserver_link_flags().contains("gitVersion=v1.36.3 "),
            "{}",
            apiserver_link_flags()
        );
        assert!(
            apiserver_link_flags().ends_with("gitMinor=36"),
            "{}",
            apiserver_link_flags()
        );
    }
}
