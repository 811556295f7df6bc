//! The processes of a run: API server, gateway, limit. Each ends when it is dropped.

mod status;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::BenchError;
use super::load::{Digest, Numbering, Source};
use super::measure::Observed;
use super::roles::Order;
use crate::process;

pub(crate) use self::status::Open;

/// The path of the stream, and the scope of the bench's objects.
const PATH: &str = "/resource-stream/v1?version=v1&resource=configmaps&namespace=bench";

/// The objects of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) objects: usize,
    pub(crate) object_bytes: usize,
}

/// A child of ours, whose output is read line by line.
#[derive(Debug)]
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(command: &mut Command) -> Result<Self, BenchError> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|source| process::start_error(command, source))?;
        let input = child.stdin.take();
        let output = child
            .stdout
            .take()
            .ok_or_else(|| BenchError::Role("a program without an output".to_owned()))?;
        Ok(Self {
            child,
            input,
            output: BufReader::new(output),
        })
    }

    fn line(&mut self) -> Result<String, BenchError> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line);
        if read.map_err(BenchError::io("read what a program says"))? == 0 {
            return Err(BenchError::Role(
                "a program of the bench ended by itself".to_owned(),
            ));
        }
        Ok(line.trim_end().to_owned())
    }

    fn order(&mut self, order: Order) -> Result<(), BenchError> {
        let Some(input) = &mut self.input else {
            return Ok(());
        };
        input
            .write_all(order.line().as_bytes())
            .and_then(|()| input.flush())
            .map_err(BenchError::io("give an order"))
    }

    fn ask(&mut self, order: Order) -> Result<Value, BenchError> {
        self.order(order)?;
        let line = self.line()?;
        serde_json::from_str(&line).map_err(|error| BenchError::Role(format!("{error} in {line:?}")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What sends changes: the API server of a gateway, or the limit program itself.
#[derive(Debug)]
pub(crate) struct Changing(Program);

impl Changing {
    fn start(role: &str, size: Size) -> Result<(Self, SocketAddr), BenchError> {
        let own = std::env::current_exe().map_err(BenchError::io("find this program"))?;
        let mut command = Command::new(own);
        command.args(["bench-role", role]);
        command.args(["--objects", &size.objects.to_string()]);
        command.args(["--object-bytes", &size.object_bytes.to_string()]);
        let mut program = Program::start(&mut command)?;
        let line = program.line()?;
        let address = line
            .parse()
            .map_err(|_| BenchError::Role(format!("no address in {line:?}")))?;
        Ok((Self(program), address))
    }

    pub(crate) fn observed(&self) -> Observed {
        Observed(self.0.child.id())
    }

    /// Changes so many objects a second from now on; 0 stops.
    pub(crate) fn rate(&mut self, rate: f64) -> Result<(), BenchError> {
        self.0.order(Order::Rate(rate))
    }

    /// Changes so many objects at that rate, then stops.
    pub(crate) fn burst(&mut self, changes: u64, rate: f64) -> Result<(), BenchError> {
        self.0.order(Order::Burst { changes, rate })
    }

    /// How many changes were made so far.
    pub(crate) fn changes(&mut self) -> Result<u64, BenchError> {
        self.count("changes")
    }

    /// One of the numbers of the report: `changes`, `newest`, `list`, `watch`, `open_watches`.
    pub(crate) fn count(&mut self, name: &str) -> Result<u64, BenchError> {
        let report = self.0.ask(Order::Report)?;
        report[name]
            .as_u64()
            .ok_or_else(|| BenchError::Role(format!("no {name} in {report}")))
    }

    /// The digest of all objects.
    pub(crate) fn digest(&mut self) -> Result<Digest, BenchError> {
        let answer = self.0.ask(Order::Digest)?;
        Ok(Digest {
            objects: answer["objects"].as_u64().unwrap_or(0),
            sum: answer["sum"].as_u64().unwrap_or(0),
        })
    }
}

/// What serves readers.
#[derive(Debug)]
pub(crate) enum Server {
    Gateway(Gateway),
    Limit { changing: Changing, address: SocketAddr },
}

/// The gateway, and the API server that it reads.
#[derive(Debug)]
pub(crate) struct Gateway {
    program: Program,
    upstream: Changing,
    address: SocketAddr,
    /// Its kubeconfig.
    _folder: TempDir,
}

/// Which server a run is of.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Gateway {
        program: PathBuf,
        /// Flags beyond those that every run has.
        flags: Vec<String>,
    },
    Limit,
}

impl Server {
    /// Starts it with its objects; it listens when this returns.
    pub(crate) fn start(kind: &Kind, size: Size) -> Result<Self, BenchError> {
        match kind {
            Kind::Gateway { program, flags } => Ok(Self::Gateway(Gateway::start(program, flags, size)?)),
            Kind::Limit => {
                let (changing, address) = Changing::start("limit", size)?;
                Ok(Self::Limit { changing, address })
            }
        }
    }

    pub(crate) fn source(&self) -> Source {
        let (address, numbering) = match self {
            Self::Gateway(gateway) => (gateway.address, Numbering::Strict),
            Self::Limit { address, .. } => (*address, Numbering::Preformatted),
        };
        Source {
            address,
            path: PATH.to_owned(),
            numbering,
        }
    }

    /// The process that serves the readers.
    pub(crate) fn observed(&self) -> Observed {
        match self {
            Self::Gateway(gateway) => Observed(gateway.program.child.id()),
            Self::Limit { changing, .. } => changing.observed(),
        }
    }

    /// What the gateway says it has open; the limit keeps no such account.
    pub(crate) fn open(&self) -> Result<Open, BenchError> {
        match self {
            Self::Gateway(gateway) => Open::of(gateway.address),
            Self::Limit { .. } => Err(BenchError::Role(
                "the limit does not say what it has open".to_owned(),
            )),
        }
    }

    pub(crate) fn changing(&mut self) -> &mut Changing {
        match self {
            Self::Gateway(gateway) => &mut gateway.upstream,
            Self::Limit { changing, .. } => changing,
        }
    }
}

impl Gateway {
    fn start(program: &Path, flags: &[String], size: Size) -> Result<Self, BenchError> {
        let (upstream, api) = Changing::start("upstream", size)?;
        let folder = tempfile::tempdir().map_err(BenchError::io("create a temporary folder"))?;
        let kubeconfig = folder.path().join("kubeconfig");
        let text = serde_json::json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "bench", "cluster": {"server": format!("http://{api}")}}],
            "users": [{"name": "bench", "user": {}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "bench"}}],
            "current-context": "bench",
        });
        crate::files::write(&kubeconfig, &text.to_string())?;
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("KRM_") {
                command.env_remove(name);
            }
        }
        command.arg("--kubeconfig").arg(&kubeconfig);
        command.args(["--listen", "127.0.0.1:0", "--allow", "configmaps"]);
        command.args(flags);
        let mut program = Program::start(&mut command)?;
        let line = program.line()?;
        let address = line
            .strip_prefix("page http://")
            .and_then(|rest| rest.trim_end_matches('/').parse().ok())
            .ok_or_else(|| {
                BenchError::Role(format!("the gateway does not say where it listens: {line:?}"))
            })?;
        Ok(Self {
            program,
            upstream,
            address,
            _folder: folder,
        })
    }
}

/// Whether the gateway knows a flag, by its own help.
pub(crate) fn knows_flag(program: &Path, flag: &str) -> Result<bool, BenchError> {
    let help = process::output(Command::new(program).arg("--help"))?;
    Ok(help.split_whitespace().any(|word| word == flag))
}
