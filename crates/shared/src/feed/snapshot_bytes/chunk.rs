//! A list of chunks that is encoded while it is read.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::{Bytes, BytesMut};
use krm_stream_projection::{Projected, Upsert};
use krm_stream_protocol::frame;

/// The most bytes of a chunk, unless a single object has more.
const CHUNK_BYTES: usize = 64 * 1024;

/// The first object's `seq`: that of `reset` is 1.
const FIRST_SEQ: u64 = 2;

/// Whole frames of consecutive objects, and the way to the next chunk.
pub(crate) struct Chunk {
    bytes: Bytes,
    objects: u64,
    /// All objects of the snapshot in slots before this one are in this chunk or in one before it.
    next_slot: u32,
    /// The objects of this chunk of which values are withheld: whoever is sent it has to take note of them.
    withheld: Box<[Arc<Projected>]>,
    next: OnceLock<Option<Arc<Self>>>,
    rest: Mutex<Rest>,
}

/// The objects after a chunk, until they are encoded.
#[derive(Default)]
struct Rest {
    objects: std::vec::IntoIter<(u32, Arc<Projected>)>,
    seq: u64,
}

impl Chunk {
    /// An empty chunk before all objects, which are in the order of their slots.
    pub(super) fn before(objects: Vec<(u32, Arc<Projected>)>) -> Self {
        let rest = Rest {
            objects: objects.into_iter(),
            seq: FIRST_SEQ,
        };
        Self {
            bytes: Bytes::new(),
            objects: 0,
            next_slot: 0,
            withheld: Box::default(),
            next: OnceLock::new(),
            rest: Mutex::new(rest),
        }
    }

    /// The next chunk, encoded if this is the first to ask for it; `None` after the last one.
    pub(super) fn next(&self) -> Option<Arc<Self>> {
        self.next
            .get_or_init(|| {
                let rest = std::mem::take(&mut *self.rest.lock().unwrap_or_else(PoisonError::into_inner));
                rest.encode().map(Arc::new)
            })
            .clone()
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(crate) fn objects(&self) -> u64 {
        self.objects
    }

    pub(crate) fn withheld(&self) -> &[Arc<Projected>] {
        &self.withheld
    }

    pub(super) fn next_slot(&self) -> u32 {
        self.next_slot
    }
}

impl Rest {
    fn encode(mut self) -> Option<Chunk> {
        let (mut count, mut size) = (0, 0);
        for (_, projected) in self.objects.as_slice() {
            let longest = longest(projected);
            if count > 0 && size + longest > CHUNK_BYTES {
                break;
            }
            (count, size) = (count + 1, size + longest);
        }
        let (mut bytes, mut withheld, mut next_slot) = (BytesMut::with_capacity(size), Vec::new(), None);
        for (slot, projected) in self.objects.by_ref().take(count) {
            next_slot = Some(slot + 1);
            projected.write_prefix(self.seq, Upsert::Added, &mut bytes);
            bytes.extend_from_slice(projected.tail());
            if let Some(redactions) = projected.redactions() {
                redactions.write_first(&mut bytes);
                withheld.push(projected);
            }
            self.seq += 1;
        }
        Some(Chunk {
            bytes: bytes.freeze(),
            objects: count as u64,
            next_slot: next_slot?,
            withheld: withheld.into(),
            next: OnceLock::new(),
            rest: Mutex::new(self),
        })
    }
}

/// The most bytes of an object's frame.
fn longest(projected: &Projected) -> usize {
    const AROUND_PATH: usize = br#"{"path":,"rev":1},"#.len();
    let redacted = projected.redactions().map_or(0, |redactions| {
        let paths = redactions.as_slice().iter();
        paths
            .map(|one| AROUND_PATH + one.path_json().len())
            .sum::<usize>()
            + br#","redacted":[]"#.len()
            + frame::END.len()
    });
    frame::LONGEST_BEGIN + projected.tail().len() + redacted
}

/// A long list is taken apart step by step: dropped as it is, each chunk would drop the next one on the stack.
impl Drop for Chunk {
    fn drop(&mut self) {
        let mut next = self.next.take().flatten();
        while let Some(chunk) = next.and_then(Arc::into_inner) {
            next = chunk.into_next();
        }
    }
}

impl Chunk {
    fn into_next(mut self) -> Option<Arc<Self>> {
        self.next.take().flatten()
    }
}

impl fmt::Debug for Chunk {
    /// Shows numbers only, no content.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunk")
            .field("bytes", &self.bytes.len())
            .field("objects", &self.objects)
            .field("next_slot", &self.next_slot)
            .finish_non_exhaustive()
    }
}
