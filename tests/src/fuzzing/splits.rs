//! The same bytes in different pieces.

use crate::Schedule;

/// Inputs up to this length are also cut into single bytes.
const SINGLE_BYTES_UP_TO: usize = 8 * 1024;

/// Ways to cut `input`: into single bytes, and twice at places that follow from the input alone, so that a finding
/// comes back whenever the input does. Pieces may be empty.
pub(super) fn splits(input: &[u8]) -> Vec<Vec<&[u8]>> {
    let mut schedule = Schedule::new(seed(input));
    let mut ways = vec![random(input, 3, &mut schedule), random(input, 40, &mut schedule)];
    if input.len() <= SINGLE_BYTES_UP_TO {
        ways.push(input.chunks(1).collect());
    }
    ways
}

fn random<'a>(mut rest: &'a [u8], bound: usize, schedule: &mut Schedule) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(schedule.below(bound).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// [FNV-1a](https://datatracker.ietf.org/doc/html/draft-eastlake-fnv) of the input.
pub(super) fn seed(input: &[u8]) -> u64 {
    input.iter().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01B3)
    })
}
