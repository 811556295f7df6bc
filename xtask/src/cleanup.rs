//! Undoing what a command started, however that command ends.
//!
//! A command that is killed cannot tidy up after itself. So it starts a second process, in a group of its
//! own that Ctrl-C does not reach, and holds that one's standard input open. What is to be undone is written
//! there, line by line; when the input closes, because the command is done or because it is gone, the second
//! process undoes it, last things first. Exactly one path leads to the end, and it is the same after success,
//! failure, Ctrl-C and SIGKILL.

use std::io::{BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::control_plane::ControlPlane;
use crate::process::{self, ProcessError, Signal};
use crate::wait;

/// A thing to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Processes of this group are ended.
    Group(u32),
    /// The control plane in this folder is ended and the folder removed.
    ControlPlane(PathBuf),
    /// The kind cluster of this name is deleted.
    Kind(String),
    /// The folder is removed.
    Folder(PathBuf),
}

impl Leftover {
    fn to_line(&self) -> String {
        match self {
            Self::Group(id) => format!("group {id}"),
            Self::ControlPlane(state) => format!("control-plane {}", state.display()),
            Self::Kind(name) => format!("kind {name}"),
            Self::Folder(folder) => format!("folder {}", folder.display()),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "group" => rest.parse().ok().map(Self::Group),
            "control-plane" => Some(Self::ControlPlane(rest.into())),
            "kind" => Some(Self::Kind(rest.to_owned())),
            "folder" => Some(Self::Folder(rest.into())),
            _ => None,
        }
    }

    fn undo(&self) {
        match self {
            Self::Group(id) => end_group(*id),
            Self::ControlPlane(state) => {
                if let Err(error) = ControlPlane::destroy(state) {
                    eprintln!("error: {}", crate::with_sources(&error));
                }
            }
            Self::Kind(name) => delete_kind(name),
            Self::Folder(folder) => {
                if let Err(error) = crate::files::remove_folder(folder) {
                    eprintln!("error: {}", crate::with_sources(&error));
                }
            }
        }
    }
}

/// The holder of the second process; dropping it has everything undone, and waits for that.
#[derive(Debug)]
pub(crate) struct Cleanup {
    child: Child,
}

impl Cleanup {
    /// Starts the second process, with nothing to undo yet.
    ///
    /// # Errors
    ///
    /// When this program cannot be started once more.
    pub(crate) fn start() -> Result<Self, ProcessError> {
        let program = std::env::current_exe().map_err(|source| ProcessError::Start {
            program: "this program once more".to_owned(),
            source,
        })?;
        let mut command = Command::new(program);
        command.arg("cleanup").stdin(Stdio::piped()).process_group(0);
        let child = command
            .spawn()
            .map_err(|source| process::start_error(&command, source))?;
        Ok(Self { child })
    }

    /// Names a thing to undo; best said before it is done.
    ///
    /// # Errors
    ///
    /// When the second process is gone.
    pub(crate) fn promise(&mut self, leftover: &Leftover) -> Result<(), ProcessError> {
        let gone = |source| ProcessError::Start {
            program: "the cleanup".to_owned(),
            source,
        };
        let input = self
            .child
            .stdin
            .as_mut()
            .ok_or_else(|| gone(std::io::ErrorKind::BrokenPipe.into()))?;
        writeln!(input, "{}", leftover.to_line())
            .and_then(|()| input.flush())
            .map_err(gone)
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _reported_by_itself = self.child.wait();
    }
}

/// What the second process does: read what is to be undone, wait for the end, undo it.
pub(crate) fn run(input: impl BufRead) {
    let lines = input.lines().map_while(Result::ok);
    let leftovers: Vec<Leftover> = lines.filter_map(|line| Leftover::parse(&line)).collect();
    for leftover in leftovers.iter().rev() {
        leftover.undo();
    }
}

fn end_group(id: u32) {
    process::signal_group(id, Signal::Terminate);
    // The members are not known by id, so all that can be asked is whether the group still has any.
    let gone = || (!process::group_exists(id)).then_some(());
    if wait::until(Duration::from_secs(2), gone).is_none() {
        process::signal_group(id, Signal::Kill);
    }
}

fn delete_kind(name: &str) {
    let deleted = process::output(Command::new("kind").args(["delete", "cluster", "--name", name]));
    if let Err(error) = deleted {
        eprintln!(
            "error: {}; delete it by hand: kind delete cluster --name {name}",
            crate::with_sources(&error)
        );
    }
}

/// A folder that a cleanup removes: not a [`tempfile::TempDir`], which a killed process would leave behind.
pub(crate) fn temporary_folder(cleanup: &mut Cleanup, within: &Path) -> Result<PathBuf, CleanupFolderError> {
    crate::files::create_folder(within)?;
    let folder = tempfile::Builder::new()
        .prefix("e2e-")
        .tempdir_in(within)
        .map_err(crate::files::naming("create a folder in", within))?
        .keep();
    cleanup.promise(&Leftover::Folder(folder.clone()))?;
    Ok(folder)
}

/// A temporary folder could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CleanupFolderError {
    /// The place for it cannot be written.
    #[error(transparent)]
    File(#[from] crate::files::FileError),
    /// The cleanup is gone.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_promised_is_read_back() {
        for leftover in [
            Leftover::Group(123),
            Leftover::ControlPlane("/a folder/with spaces".into()),
            Leftover::Kind("krm-e2e-1".to_owned()),
            Leftover::Folder("/tmp/x".into()),
        ] {
            assert_eq!(Leftover::parse(&leftover.to_line()), Some(leftover));
        }
        assert_eq!(Leftover::parse("group every-one"), None);
        assert_eq!(Leftover::parse("nothing"), None);
    }

    #[test]
    fn the_end_of_input_ends_the_processes_and_removes_the_folders() {
        let folder = tempfile::tempdir().unwrap().keep();
        let mut child = Command::new("sh")
            .args(["-c", "sh -c 'read -r line'; true"])
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let promised = format!("folder {}\ngroup {}\n", folder.display(), child.id());
        run(promised.as_bytes());
        assert!(!child.wait().unwrap().success());
        assert!(!folder.exists());
    }
}
