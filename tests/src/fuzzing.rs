//! What the fuzz targets check. Each function takes any input and panics where a rule does not hold.
//!
//! The package in `fuzz/` calls them with inputs that libFuzzer finds; the smoke test calls them with the committed
//! corpora and mutations of those, on a stable compiler.

mod document;
mod merge_patch;
mod patching;
mod projection;
mod reference;
mod scope;
mod splits;
mod sse;
mod watch;

pub use merge_patch::merge_patch;
pub use projection::projection;
pub use scope::scope_parse;
pub use sse::sse_decode;
pub use watch::watch_lines;

/// A target: its name, which is that of its corpus too, and what it checks.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: [Target; 5] = [
    ("sse_decode", sse_decode),
    ("scope_parse", scope_parse),
    ("watch_lines", watch_lines),
    ("projection", projection),
    ("merge_patch", merge_patch),
];
