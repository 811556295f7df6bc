//! What the figures were measured on.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::process;
use crate::workspace;

/// The machine, and the state of the sources.
pub(crate) fn facts() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
    };
    let mut git = Command::new("git");
    git.args(["describe", "--always", "--dirty"])
        .current_dir(workspace::root());
    json!({
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
        "cpu": field(&read("/proc/cpuinfo"), "model name"),
        "memory": field(&read("/proc/meminfo"), "MemTotal"),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "load": read("/proc/loadavg").trim(),
        "revision": process::output(&mut git).unwrap_or_default().trim(),
        "seconds_since_1970": crate::wait::unix_nanos() / 1_000_000_000,
    })
}

/// One line about the machine.
pub(crate) fn line(facts: &Value) -> String {
    let text = |name: &str| match &facts[name] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    format!(
        "{} CPUs ({}), {}, Linux {}, revision {}; load before: {}",
        text("cpus"),
        text("cpu"),
        text("memory"),
        text("kernel"),
        text("revision"),
        text("load")
    )
}
