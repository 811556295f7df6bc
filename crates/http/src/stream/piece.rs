//! Where a chunk that is too large is cut.

use crate::settings::CHUNK_BYTES;

/// How much of a chunk of so many bytes is handed out next. Never all but its last byte: the blank line at its end would be torn,
/// and what comes after it would not be seen to be between events.
pub(super) const fn piece_of(bytes: usize) -> usize {
    if bytes <= CHUNK_BYTES {
        bytes
    } else if bytes == CHUNK_BYTES + 1 {
        CHUNK_BYTES - 1
    } else {
        CHUNK_BYTES
    }
}
