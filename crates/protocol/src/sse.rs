//! Server-sent events over raw bytes: writing JSON into a data line, and reading a stream as its specification says.

mod decode;
mod encode;

pub use decode::{SseDecoder, SseError, SseEvent};
pub use encode::put_json;
