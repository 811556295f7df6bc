//! The fuzz targets on a stable compiler: every input of the committed corpora, each of its beginnings, and some thousand
//! mutations that are the same in every run. It finds what comes back; `cargo fuzz` finds what is new.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::path::PathBuf;

use krm_stream_tests::{Schedule, fuzzing, long_mode};

/// Mutations of each input. More in the long mode.
const MUTATIONS: usize = 24;
const MUTATIONS_IN_LONG_MODE: usize = 500;

/// At most this many beginnings of each input.
const BEGINNINGS: usize = 48;

/// What mutations put in: pieces on which the grammars turn.
const PIECES: [&[u8]; 24] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b",",
    b":",
    b"\n",
    b"\r",
    b" ",
    b"\0",
    b"\xFF",
    b"&",
    b"=",
    b"%2e",
    b"null",
    b"1E400",
    b"\\ud800",
    b"\"data\":",
    b"\"kind\":\"Secret\",",
    b"data: ",
    b"\xEF\xBB\xBF",
    b"in (",
];

struct Corpus {
    check: fn(&[u8]),
    inputs: Vec<(String, Vec<u8>)>,
}

fn corpus(name: &str) -> Corpus {
    let (_, check) = fuzzing::TARGETS
        .into_iter()
        .find(|(target, _)| *target == name)
        .unwrap();
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus")).join(name);
    let mut inputs: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    inputs.sort_unstable();
    assert!(inputs.len() >= 10, "{} has few inputs", folder.display());
    Corpus { check, inputs }
}

/// Runs a check, and says on which input it fails.
fn run(check: fn(&[u8]), of: &str, input: &[u8]) {
    if let Err(panic) = std::panic::catch_unwind(|| check(input)) {
        eprintln!("from {of}: {:?}", String::from_utf8_lossy(input));
        std::panic::resume_unwind(panic);
    }
}

fn smoke(name: &str) {
    let Corpus { check, inputs } = corpus(name);
    let mutations = if long_mode() {
        MUTATIONS_IN_LONG_MODE
    } else {
        MUTATIONS
    };
    let mut schedule = Schedule::new(u64::try_from(inputs.len()).unwrap());
    for (of, input) in &inputs {
        run(check, of, input);
        let step = input.len().div_ceil(BEGINNINGS).max(1);
        for end in (0..input.len()).step_by(step) {
            run(check, of, &input[..end]);
        }
        for _ in 0..mutations {
            let other = &inputs[schedule.below(inputs.len())].1;
            run(check, of, &mutated(input, other, &mut schedule));
        }
    }
}

/// One to three changes.
fn mutated(input: &[u8], other: &[u8], schedule: &mut Schedule) -> Vec<u8> {
    let mut mutated = input.to_vec();
    for _ in 0..=schedule.below(3) {
        let at = schedule.below(mutated.len() + 1);
        let end = (at + schedule.below(12)).min(mutated.len());
        match schedule.below(5) {
            0 => drop(mutated.splice(at..end, [])),
            1 => {
                let copy = mutated[at..end].to_vec();
                drop(mutated.splice(at..at, copy));
            }
            2 => {
                let piece = PIECES[schedule.below(PIECES.len())];
                drop(mutated.splice(at..at, piece.iter().copied()));
            }
            3 => {
                if let Some(byte) = mutated.get_mut(at) {
                    *byte ^= 1 << schedule.below(8);
                }
            }
            _ => {
                let from = schedule.below(other.len() + 1);
                let to = (from + schedule.below(40)).min(other.len());
                drop(mutated.splice(at..end, other[from..to].iter().copied()));
            }
        }
    }
    mutated
}

#[test]
fn any_split_of_an_event_stream_gives_the_events_of_the_specification() {
    smoke("sse_decode");
}

#[test]
fn an_accepted_scope_is_canonical_and_reaches_no_other_path() {
    smoke("scope_parse");
}

#[test]
fn any_split_of_a_watch_body_gives_the_events_of_a_plain_reading() {
    smoke("watch_lines");
}

#[test]
fn a_projection_keeps_tokens_and_shows_nothing_of_what_it_withholds() {
    smoke("projection");
}

#[test]
fn the_guard_for_merge_patches_says_what_the_rules_say() {
    smoke("merge_patch");
}

#[test]
fn every_target_has_its_program_and_its_corpus() {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz"));
    let manifest = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap();
    for (name, _) in fuzzing::TARGETS {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        let program = std::fs::read_to_string(folder.join(format!("fuzz_targets/{name}.rs"))).unwrap();
        assert!(program.contains(&format!("fuzzing::{name}(")), "{name}");
        assert!(folder.join("corpus").join(name).is_dir(), "{name}");
    }
}
