//! Tests of the checker: what every script of a gateway may look like, and each way to break a rule.

use proptest::prelude::*;

use super::*;
use crate::{Event, Identity, ProjectionName, Scope, StreamError, frame};

/// One thing that a script sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Reset,
    Added(u8),
    Modified(u8),
    Deleted(u8),
    Synced,
    Resync,
    Unavailable,
    Forbidden,
}

/// Encodes with the crate's own encoder and returns what stands on the data line.
fn encode(send: Sent, seq: u64) -> String {
    let scope = Scope::builder("v1", "pods").target("demo").build().unwrap();
    let projection = ProjectionName::from("krm-full/v1");
    let identity = |uid: u8| Identity {
        uid: format!("u{uid}").into(),
        api_version: "v1".into(),
        kind: "Pod".into(),
        namespace: None,
        name: "n".into(),
    };
    let mut out = Vec::new();
    match send {
        Sent::Reset => Event::Reset {
            scope: &scope,
            projection: &projection,
        }
        .encode(seq, &mut out),
        Sent::Added(uid) => upsert(&mut out, seq, EventType::Added, uid),
        Sent::Modified(uid) => upsert(&mut out, seq, EventType::Modified, uid),
        Sent::Deleted(uid) => Event::Deleted(&identity(uid)).encode(seq, &mut out),
        Sent::Synced => Event::Synced.encode(seq, &mut out),
        Sent::Resync => Event::Error(&StreamError::resync("m")).encode(seq, &mut out),
        Sent::Unavailable => {
            let wait = Some(std::time::Duration::from_secs(1));
            Event::Error(&StreamError::unavailable("m", wait)).encode(seq, &mut out);
        }
        Sent::Forbidden => Event::Error(&StreamError::forbidden("m")).encode(seq, &mut out),
    }
    let wire = String::from_utf8(out).unwrap();
    let line = wire.lines().find(|line| line.starts_with("data: ")).unwrap();
    line["data: ".len()..].to_owned()
}

fn upsert(out: &mut Vec<u8>, seq: u64, event_type: EventType, uid: u8) {
    frame::begin(out, seq, event_type);
    frame::put_json(
        out,
        format!(",\"object\":{{\"metadata\":{{\"uid\":\"u{uid}\",\"resourceVersion\":\"{seq}\"}}}},\"redacted\":[]").as_bytes(),
    );
    frame::end(out);
}

fn check(script: &[Sent]) -> Result<(), FrameGrammarError> {
    let mut grammar = FrameGrammar::new();
    for (send, seq) in script.iter().zip(1..) {
        grammar.check(&encode(*send, seq))?;
    }
    Ok(())
}

#[test]
fn cycles_with_their_errors_are_in_order() {
    use Sent::{Added, Deleted, Forbidden, Modified, Reset, Resync, Synced, Unavailable};
    for script in [
        &[Forbidden][..],
        &[Unavailable],
        &[Reset, Synced],
        &[
            Reset,
            Added(1),
            Added(1),
            Deleted(1),
            Added(1),
            Synced,
            Modified(1),
        ],
        &[
            Reset,
            Synced,
            Added(1),
            Modified(1),
            Deleted(1),
            Added(1),
            Modified(2),
        ],
        &[Reset, Added(1), Resync, Reset, Added(1), Synced, Forbidden],
        &[Reset, Synced, Resync, Unavailable],
        &[Resync, Reset],
    ] {
        check(script).unwrap();
    }
}

#[test]
fn each_event_out_of_order_is_named() {
    use Sent::{Added, Deleted, Forbidden, Modified, Reset, Resync, Synced, Unavailable};
    for script in [
        &[Added(1)][..],
        &[Deleted(1)],
        &[Synced],
        &[Reset, Modified(1)],
        &[Reset, Reset],
        &[Reset, Synced, Synced],
        &[Reset, Synced, Reset],
        &[Reset, Resync, Added(1)],
        &[Reset, Resync, Synced],
        &[Forbidden, Added(1)],
        &[Forbidden, Forbidden],
        &[Unavailable, Reset],
        &[Reset, Synced, Forbidden, Modified(1)],
    ] {
        assert!(
            matches!(check(script), Err(FrameGrammarError::OutOfOrder { .. })),
            "{script:?}"
        );
        check(&script[..script.len() - 1]).unwrap();
    }
    assert!(matches!(
        check(&[Reset, Added(1), Synced, Added(1)]),
        Err(FrameGrammarError::AddedTwice)
    ));
}

#[test]
fn sequence_shape_and_content_are_checked() {
    const RESET: &str =
        r#"{"seq":1,"type":"reset","scope":{"target":"","version":"v1","resource":"pods"},"projection":"p"}"#;
    let object = |version: &str| {
        format!(r#","object":{{"metadata":{{"uid":"u","resourceVersion":"{version}"}}}},"redacted":[]}}"#)
    };
    let second = |data: &str| {
        let mut grammar = FrameGrammar::new();
        grammar.check(RESET).unwrap();
        grammar.check(data)
    };
    assert!(matches!(
        second(r#"{"seq":3,"type":"synced"}"#),
        Err(FrameGrammarError::Sequence {
            expected: 2,
            found: 3
        })
    ));
    assert!(matches!(
        second(r#"{"seq":2,"type":"hello"}"#),
        Err(FrameGrammarError::UnknownType)
    ));
    assert!(matches!(second("<html>"), Err(FrameGrammarError::Unreadable(_))));
    for data in [
        r#"{"type":"synced","seq":2}"#,
        r#"{"seq":2,"type":"synced","more":1}"#,
        r#"{"seq":2,"type":"synced","type":"synced"}"#,
        r#"{"seq":2,"type":"added","redacted":[],"object":{"metadata":{"uid":"u"}}}"#,
        r#"{"seq":2,"type":"added","object":{"metadata":{"uid":"u"}}}"#,
        r#"{"seq":2,"type":"deleted","identity":{"uid":"u","kind":"K","apiVersion":"v1","name":"n"}}"#,
        r#"{"seq":2,"type":"deleted","identity":{"uid":"u"}}"#,
        r#"{"seq":2,"type":"error","message":"m","code":"INTERNAL","terminal":true}"#,
        r#"{"seq":2,"type":"error","code":"INTERNAL","message":"m","terminal":true,"retryAfterMs":1,"x":1}"#,
    ] {
        assert!(
            matches!(second(data), Err(FrameGrammarError::Fields { .. })),
            "{data}"
        );
    }
    for data in [
        r#"{"seq":2,"type":"error","code":"FORBIDDEN","message":"m","terminal":false}"#,
        r#"{"seq":2,"type":"error","code":"UPSTREAM_UNAVAILABLE","message":"m","terminal":true}"#,
        r#"{"seq":2,"type":"error","code":"RESYNC_REQUIRED","message":"m","terminal":true}"#,
        r#"{"seq":2,"type":"error","code":"OTHER","message":"m","terminal":true}"#,
    ] {
        assert!(
            matches!(second(data), Err(FrameGrammarError::Terminality)),
            "{data}"
        );
    }
    assert!(matches!(
        second(
            r#"{"seq":2,"type":"added","object":{"metadata":{"uid":"u"}},"redacted":[{"path":"/b","rev":1},{"path":"/a","rev":1}]}"#
        ),
        Err(FrameGrammarError::UnsortedRedactions)
    ));
    for (ordering, later, is_wrong) in [
        (Ordering::Strict, "9", true),
        (Ordering::Lenient, "9", false),
        (Ordering::Strict, "opaque", false),
        (Ordering::Strict, "10", false),
        (Ordering::Strict, "11", false),
    ] {
        let mut grammar = FrameGrammar::with_ordering(ordering);
        grammar.check(RESET).unwrap();
        grammar
            .check(&format!(r#"{{"seq":2,"type":"added"{}"#, object("10")))
            .unwrap();
        let checked = grammar.check(&format!(r#"{{"seq":3,"type":"added"{}"#, object(later)));
        assert_eq!(matches!(checked, Err(FrameGrammarError::WentBack)), is_wrong);
        assert_eq!(checked.is_err(), is_wrong);
    }
}

/// The order alone, as a regular expression would say it: a second opinion.
fn is_in_order(script: &[Sent]) -> bool {
    let mut state = 'b';
    let mut present = [false; 3];
    for send in script {
        state = match (state, send) {
            ('b' | 'r', Sent::Reset) => {
                present = [false; 3];
                's'
            }
            ('s', Sent::Added(uid)) => {
                present[usize::from(*uid)] = true;
                's'
            }
            ('l', Sent::Added(uid)) if !present[usize::from(*uid)] => {
                present[usize::from(*uid)] = true;
                'l'
            }
            ('l', Sent::Modified(uid)) => {
                present[usize::from(*uid)] = true;
                'l'
            }
            ('s' | 'l', Sent::Deleted(uid)) => {
                present[usize::from(*uid)] = false;
                state
            }
            ('s', Sent::Synced) => 'l',
            ('b' | 's' | 'l' | 'r', Sent::Resync) => 'r',
            ('b' | 's' | 'l' | 'r', Sent::Unavailable | Sent::Forbidden) => 'e',
            _ => return false,
        };
    }
    true
}

fn any_send() -> impl Strategy<Value = Sent> {
    prop_oneof![
        4 => Just(Sent::Reset),
        6 => (0..3_u8).prop_map(Sent::Added),
        4 => (0..3_u8).prop_map(Sent::Modified),
        4 => (0..3_u8).prop_map(Sent::Deleted),
        4 => Just(Sent::Synced),
        3 => Just(Sent::Resync),
        1 => Just(Sent::Unavailable),
        1 => Just(Sent::Forbidden),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]
    #[test]
    fn a_random_script_is_taken_exactly_when_it_is_in_order(mut script in proptest::collection::vec(any_send(), 0..8)) {
        script.insert(0, Sent::Reset);
        prop_assert_eq!(check(&script).is_ok(), is_in_order(&script), "{:?}", script);
    }
}
