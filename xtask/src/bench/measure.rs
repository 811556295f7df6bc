//! What the operating system says of a process: its CPU time, its memory, its files and threads.

use std::path::PathBuf;

use super::BenchError;
use crate::files;

/// The unit of CPU times in `/proc`: `USER_HZ`, 100 on every Linux that Rust's standard library supports
/// (<https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>).
const TICKS_PER_SECOND: f64 = 100.0;

/// A process that is looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed(pub(crate) u32);

impl Observed {
    /// CPU seconds so far, in user and kernel mode, all threads.
    pub(crate) fn cpu(self) -> Result<f64, BenchError> {
        let text = self.text("stat")?;
        cpu_of(&text).ok_or_else(|| self.unreadable("stat"))
    }

    /// Memory in KiB: what is its own, and its share of what it shares with others.
    pub(crate) fn memory(self) -> Result<f64, BenchError> {
        let text = self.text("smaps_rollup").or_else(|_| self.text("status"))?;
        kib(&text, "Pss:")
            .or_else(|| kib(&text, "VmRSS:"))
            .ok_or_else(|| self.unreadable("smaps_rollup"))
    }

    /// The most memory that it ever had, in KiB.
    pub(crate) fn peak_memory(self) -> Result<f64, BenchError> {
        kib(&self.text("status")?, "VmHWM:").ok_or_else(|| self.unreadable("status"))
    }

    /// How many files, sockets included, it has open.
    pub(crate) fn files(self) -> Result<usize, BenchError> {
        self.entries("fd")
    }

    pub(crate) fn threads(self) -> Result<usize, BenchError> {
        self.entries("task")
    }

    fn entries(self, name: &'static str) -> Result<usize, BenchError> {
        let path = self.path(name);
        let entries = std::fs::read_dir(&path).map_err(files::naming("list", &path))?;
        Ok(entries.count())
    }

    fn path(self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{name}", self.0))
    }

    fn text(self, name: &str) -> Result<String, BenchError> {
        Ok(files::read(&self.path(name))?)
    }

    fn unreadable(self, name: &str) -> BenchError {
        BenchError::Role(format!(
            "{} says nothing of what is asked",
            self.path(name).display()
        ))
    }
}

/// User and system time of `/proc/PID/stat`. The program's name is in parentheses and may hold any character.
fn cpu_of(stat: &str) -> Option<f64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / TICKS_PER_SECOND)
}

/// A line `Name:   123 kB`.
fn kib(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_read_behind_a_name_of_any_form() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 3 0 12345 1 2";
        assert_eq!(cpu_of(stat), Some(2.0));
        assert_eq!(cpu_of("42 (a) S 1"), None);
    }

    #[test]
    fn memory_is_read_by_its_name() {
        let text = "Rss:  100 kB\nPss:                4321 kB\nPss_Dirty: 1 kB\n";
        assert_eq!(kib(text, "Pss:"), Some(4321.0));
        assert_eq!(kib(text, "VmHWM:"), None);
    }

    #[test]
    fn this_process_can_be_observed() {
        let this = Observed(std::process::id());
        assert!(this.cpu().unwrap() >= 0.0);
        assert!(this.memory().unwrap() > 100.0);
        assert!(this.peak_memory().unwrap() > 100.0);
        assert!(this.files().unwrap() > 2 && this.threads().unwrap() > 0);
    }
}
