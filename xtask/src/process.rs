//! Running other programs, and ending those that were left running, always by their id.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use crate::wait;

/// A program could not be run, or did not succeed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// The program could not be started at all.
    #[error("cannot start {program}")]
    Start {
        /// The program's name or path.
        program: String,
        /// Why the operating system refused.
        source: std::io::Error,
    },
    /// The program ran and failed.
    #[error("{program} failed ({status}){}", tail(output))]
    Failed {
        /// The program and its arguments.
        program: String,
        /// How it ended.
        status: ExitStatus,
        /// What it printed on standard error, where that was captured.
        output: String,
    },
    /// The program is not installed.
    #[error("{program} is not on PATH; {remedy}")]
    Missing {
        /// The program's name.
        program: &'static str,
        /// How to install it.
        remedy: &'static str,
    },
    /// A process outlived a SIGKILL.
    #[error("process {pid} is still there {} s after SIGKILL; end it by hand: kill -KILL {pid}", GONE_WITHIN.as_secs())]
    Immortal {
        /// The process id.
        pid: u32,
    },
}

/// SIGKILL leaves a process no choice, but the kernel may first have to finish a write for it.
const GONE_WITHIN: Duration = Duration::from_mins(1);

fn tail(output: &str) -> String {
    let output = output.trim();
    if output.is_empty() {
        String::new()
    } else {
        format!(": {output}")
    }
}

/// The path of a program on `PATH`, or the error that says how to get it.
pub(crate) fn find(program: &'static str, remedy: &'static str) -> Result<PathBuf, ProcessError> {
    look_up(program).ok_or(ProcessError::Missing { program, remedy })
}

/// The path of a program on `PATH`, if it is there.
pub(crate) fn look_up(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
}

/// Cargo itself: the one that runs us, else the one on `PATH`.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end with our own output, and gives back how it ended.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, ProcessError> {
    command.status().map_err(|source| start_error(command, source))
}

/// Runs a command to its end with our own output; anything but success is an error.
pub(crate) fn run(command: &mut Command) -> Result<(), ProcessError> {
    let status = status(command)?;
    if status.success() {
        return Ok(());
    }
    Err(ProcessError::Failed {
        program: line(command),
        status,
        output: String::new(),
    })
}

/// Runs a command to its end and gives back its standard output; anything but success is an error.
pub(crate) fn output(command: &mut Command) -> Result<String, ProcessError> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| start_error(command, source))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(ProcessError::Failed {
        program: line(command),
        status: output.status,
        output: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

pub(crate) fn start_error(command: &Command, source: std::io::Error) -> ProcessError {
    ProcessError::Start {
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    }
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// A child's ending as our own exit code: a signal becomes 128 and its number, as shells have it.
pub(crate) fn exit_code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

/// A signal that a process, or a process group, is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Asks it to end.
    Terminate,
    /// Ends it.
    Kill,
    /// Freezes it.
    Stop,
    /// Lets it go on.
    Continue,
}

impl Signal {
    fn name(self) -> &'static str {
        match self {
            Self::Terminate => "TERM",
            Self::Kill => "KILL",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
        }
    }
}

/// Sends a signal to one process. That it is gone already is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    send(signal, &pid.to_string());
}

/// Sends a signal to every process of a group. That all are gone already is no error.
pub(crate) fn signal_group(group: u32, signal: Signal) {
    send(signal, &format!("-{group}"));
}

/// Whether any process of the group is left, one that only waits to be reaped included.
pub(crate) fn group_exists(group: u32) -> bool {
    kill("0", &format!("-{group}"))
}

fn send(signal: Signal, target: &str) {
    let _gone_already = kill(signal.name(), target);
}

/// Whether there was anything to send the signal to.
fn kill(signal: &str, target: &str) -> bool {
    // The shell's own `kill` exists wherever a shell does; the program of that name may not be installed. POSIX
    // has a group's negative number taken as such only after `--`, and that only after `-s`.
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("kill -s {signal} -- {target}")]);
    shell
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

/// What has become of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Running,
    /// It has no command line: it is only just starting, or it was killed, and its threads, and with them its ports, are still
    /// being taken down.
    Between,
    /// It is no more, or its id is another's now.
    Gone,
}

/// Whether the process `pid` runs, and its command line names `marker`.
///
/// The marker, a folder that only this process was given, guards against ids that were used again.
pub(crate) fn is_running(pid: u32, marker: &Path) -> bool {
    presence(pid, marker) == Presence::Running
}

/// Whether there is no such process. One that is only just starting, or still ending, is there.
pub(crate) fn is_gone(pid: u32, marker: &Path) -> bool {
    presence(pid, marker) == Presence::Gone
}

fn presence(pid: u32, marker: &Path) -> Presence {
    let marker = marker.to_string_lossy();
    if !Path::new("/proc/self").exists() {
        let asked = output(Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()]));
        let runs = asked.is_ok_and(|line| line.contains(marker.as_ref()));
        return if runs { Presence::Running } else { Presence::Gone };
    }
    let process = PathBuf::from(format!("/proc/{pid}"));
    match std::fs::read(process.join("cmdline")) {
        Ok(line) if String::from_utf8_lossy(&line).contains(marker.as_ref()) => Presence::Running,
        // The last thing that a new process gets is its command line, well after its parent was told that it has begun; the
        // first thing that a dying one loses is its memory, and its command line with it.
        Ok(line) if line.is_empty() && !has_ended(&process) => Presence::Between,
        Ok(_) | Err(_) => Presence::Gone,
    }
}

/// Whether a process without a command line has no thread left, and only waits to be reaped.
fn has_ended(process: &Path) -> bool {
    let threads = std::fs::read_dir(process.join("task")).map_or(0, Iterator::count);
    // The state follows the program's name, which is in parentheses and may hold any character.
    let stat = std::fs::read_to_string(process.join("stat")).unwrap_or_default();
    let zombie = stat
        .rsplit_once(')')
        .is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
    zombie && threads <= 1
}

/// Ends a process: asks it, waits `grace`, then kills it, and returns once it and its ports are free.
///
/// # Errors
///
/// When it is still there long after the kill.
pub(crate) fn end(pid: u32, marker: &Path, grace: Duration) -> Result<(), ProcessError> {
    if !grace.is_zero() && is_running(pid, marker) {
        signal(pid, Signal::Terminate);
        if wait::until(grace, || is_gone(pid, marker).then_some(())).is_some() {
            return Ok(());
        }
    }
    let mut is_killed = false;
    let gone = || match presence(pid, marker) {
        Presence::Running if is_killed => None,
        Presence::Running => {
            signal(pid, Signal::Kill);
            is_killed = true;
            None
        }
        Presence::Between => None,
        Presence::Gone => Some(()),
    };
    wait::until(GONE_WITHIN, gone).ok_or(ProcessError::Immortal { pid })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_together_with_its_remedy() {
        let error = find("no-such-program-anywhere", "install it with care").unwrap_err();
        assert_eq!(
            error.to_string(),
            "no-such-program-anywhere is not on PATH; install it with care"
        );
    }

    #[test]
    fn a_failed_program_shows_what_it_said() {
        let error = output(Command::new("sh").args(["-c", "echo trouble >&2; exit 3"])).unwrap_err();
        assert!(error.to_string().contains("exit status: 3"), "{error}");
        assert!(error.to_string().ends_with(": trouble"), "{error}");
    }

    #[test]
    fn a_process_is_recognised_by_its_id_and_its_command_line_and_ended_by_its_id() {
        let marker = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            .args(["-c", "trap '' TERM; read -r line; : \"$0\""])
            .arg(marker.path())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = child.id();
        assert!(
            wait::until(Duration::from_secs(10), || is_running(pid, marker.path())
                .then_some(()))
            .is_some()
        );
        assert!(!is_running(pid, Path::new("/some/other/folder")));
        end(pid, marker.path(), Duration::from_millis(100)).unwrap();
        assert!(!is_running(pid, marker.path()));
        let status = child.wait().unwrap();
        assert!(!status.success());
    }

    #[test]
    fn a_process_that_has_only_just_begun_is_there_and_can_be_ended() {
        let marker = tempfile::tempdir().unwrap();
        for _ in 0..10 {
            let mut child = Command::new("sh")
                .args(["-c", "read -r line; : \"$0\""])
                .arg(marker.path())
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            assert!(!is_gone(child.id(), marker.path()));
            end(child.id(), marker.path(), Duration::ZERO).unwrap();
            assert!(!child.wait().unwrap().success());
        }
    }
}
