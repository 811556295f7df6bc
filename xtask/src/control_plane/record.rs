//! What a state folder remembers of its control plane, so that a later command can find and end it.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::files::{self, FileError};

/// One of the two processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Component {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
}

impl Component {
    /// Both, in the order in which they start.
    pub(crate) const ALL: [Self; 2] = [Self::Etcd, Self::KubeApiserver];

    fn key(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.key())
    }
}

/// How a process is started, and the last one that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    /// The program's path.
    pub(crate) program: PathBuf,
    /// Its arguments; one of them names the state folder.
    pub(crate) arguments: Vec<String>,
    /// The port that it serves on, on 127.0.0.1.
    pub(crate) port: u16,
    /// The process id of the last start; 0 before the first.
    pub(crate) pid: u32,
}

/// The record of a control plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The store.
    pub(crate) etcd: Process,
    /// The API server.
    pub(crate) apiserver: Process,
}

/// The record of a state folder could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    /// There is none.
    #[error("no control plane in {}; start one with: cargo xtask control-plane up --state {}", .0.display(), .0.display())]
    Absent(PathBuf),
    /// It was cut short or edited.
    #[error("{} is not a record of ours: {reason}; end its processes by hand and remove the folder", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

impl Record {
    fn path(state: &Path) -> PathBuf {
        state.join("control-plane.json")
    }

    /// Whether the folder has a record.
    pub(crate) fn exists(state: &Path) -> bool {
        Self::path(state).is_file()
    }

    /// Reads the record of a folder.
    pub(crate) fn read(state: &Path) -> Result<Self, RecordError> {
        if !Self::exists(state) {
            return Err(RecordError::Absent(state.to_owned()));
        }
        let path = Self::path(state);
        let text = files::read(&path)?;
        let parsed = serde_json::from_str(&text).map_err(|error| error.to_string());
        parsed
            .and_then(|value| Self::parse(&value))
            .map_err(|reason| RecordError::Malformed { path, reason })
    }

    /// Writes the record of a folder, as a whole or not at all.
    pub(crate) fn write(&self, state: &Path) -> Result<(), RecordError> {
        let value = json!({
            Component::Etcd.key(): self.etcd.to_json(),
            Component::KubeApiserver.key(): self.apiserver.to_json(),
        });
        Ok(files::replace(&Self::path(state), &format!("{value:#}\n"))?)
    }

    fn parse(value: &Value) -> Result<Self, String> {
        let process = |component: Component| {
            Process::parse(&value[component.key()])
                .ok_or_else(|| format!("its entry for {component} is incomplete"))
        };
        Ok(Self {
            etcd: process(Component::Etcd)?,
            apiserver: process(Component::KubeApiserver)?,
        })
    }

    /// The entry of one process.
    pub(crate) fn process(&self, component: Component) -> &Process {
        match component {
            Component::Etcd => &self.etcd,
            Component::KubeApiserver => &self.apiserver,
        }
    }

    /// The entry of one process, to be changed.
    pub(crate) fn process_mut(&mut self, component: Component) -> &mut Process {
        match component {
            Component::Etcd => &mut self.etcd,
            Component::KubeApiserver => &mut self.apiserver,
        }
    }
}

impl Process {
    fn to_json(&self) -> Value {
        json!({"program": self.program, "arguments": self.arguments, "port": self.port, "pid": self.pid})
    }

    fn parse(value: &Value) -> Option<Self> {
        let words = value["arguments"].as_array()?.iter();
        Some(Self {
            program: value["program"].as_str()?.into(),
            arguments: words
                .map(|word| word.as_str().map(str::to_owned))
                .collect::<Option<_>>()?,
            port: value["port"].as_u64()?.try_into().ok()?,
            pid: value["pid"].as_u64()?.try_into().ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let process = |port, pid| Process {
            program: "/bin/x".into(),
            arguments: vec!["--a=b".to_owned()],
            port,
            pid,
        };
        let record = Record {
            etcd: process(2379, 10),
            apiserver: process(6443, 11),
        };
        record.write(folder.path()).unwrap();
        assert_eq!(Record::read(folder.path()).unwrap(), record);
    }

    #[test]
    fn an_empty_folder_says_how_to_start_and_a_broken_record_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let absent = Record::read(folder.path()).unwrap_err().to_string();
        assert!(absent.contains("control-plane up --state"), "{absent}");
        std::fs::write(folder.path().join("control-plane.json"), r#"{"etcd":{}}"#).unwrap();
        let malformed = Record::read(folder.path()).unwrap_err().to_string();
        assert!(malformed.contains("entry for etcd is incomplete"), "{malformed}");
    }
}
