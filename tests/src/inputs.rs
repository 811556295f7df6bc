//! Where the shared inputs lie: the conformance corpus and the recordings.

use std::path::PathBuf;

/// The folder with the shared inputs: `KRM_SHARED`, or `shared` beside the checkout. `None`, loudly, where it is missing.
///
/// # Panics
/// In CI (`CI` is set), where a missing folder would make these tests prove nothing.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub fn shared_inputs() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared"));
    let folder = std::env::var_os("KRM_SHARED").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let message = format!(
        "NOT RUN: the shared conformance inputs are not at {}; set KRM_SHARED to their folder",
        folder.display()
    );
    assert!(std::env::var_os("CI").is_none(), "{message}");
    eprintln!("{message}");
    None
}

/// Whether the long runs are asked for: `KRM_LONG=1`.
pub fn long_mode() -> bool {
    std::env::var_os("KRM_LONG").is_some_and(|value| value == "1")
}
