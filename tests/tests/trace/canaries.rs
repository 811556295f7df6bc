//! What is searched for, and where.

use std::error::Error;
use std::fmt::{Debug, Write as _};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use krm_stream_protocol::{Diagnostic, Diagnostics, Observation, Observer};

/// Every secret of these tests holds this word.
pub(crate) const CANARY: &str = "canary";
/// The ways in which it could be found again: as it is, in Base64 wherever it stands in the value, as hexadecimal digits,
/// and as the numbers of its bytes.
const SPELLINGS: [&str; 6] = [
    CANARY,
    "Y2FuYXJ5",
    "NhbmFye",
    "jYW5hcn",
    "63616e617279",
    "99, 97, 110, 97, 114, 121",
];

/// The first line with a canary, cut to a length that can be read.
pub(crate) fn find(text: &str) -> Option<String> {
    let line = text.lines().find(|line| {
        let lower = line.to_ascii_lowercase();
        SPELLINGS
            .iter()
            .any(|spelling| line.contains(spelling) || lower.contains(&spelling.to_ascii_lowercase()))
    })?;
    let at = SPELLINGS.iter().filter_map(|spelling| line.find(spelling)).min();
    let from = line.floor_char_boundary(at.unwrap_or_default().saturating_sub(300));
    Some(line[from..line.floor_char_boundary(from + 600)].to_owned())
}

/// All that was written somewhere. A clone is the same.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Vec<u8>>>);

impl Written {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }

    /// Writes how a value shows itself, in both ways of doing it.
    pub(crate) fn shown(&self, value: &impl Debug) {
        self.bytes()
            .extend_from_slice(format!("{value:?}\n{value:#?}\n").as_bytes());
    }
}

impl io::Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Diagnostics for Written {
    /// Writes more than a host would: each cause as text and as it shows itself.
    fn report(&self, diagnostic: &Diagnostic<'_>) {
        let mut text = format!("{diagnostic:?} {:?}", diagnostic.scope);
        let mut cause: Option<&(dyn Error + 'static)> = Some(diagnostic.cause);
        while let Some(error) = cause {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n  {error} {error:?} {error:#?}");
            cause = error.source();
        }
        self.bytes().extend_from_slice(text.as_bytes());
        self.bytes().push(b'\n');
    }
}

impl Observer for Written {
    fn observe(&self, observation: &Observation) {
        self.shown(observation);
    }
}
