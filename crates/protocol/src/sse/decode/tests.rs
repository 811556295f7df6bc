//! Tests of the decoder, table by table, and against a decoder that reads the whole text at once.

use proptest::prelude::*;

use super::*;
use crate::{EventType, frame};

type Plain = (String, String, String);

fn plain(event: &SseEvent) -> Plain {
    (
        event.event_type().to_owned(),
        event.data().to_owned(),
        event.last_event_id().to_owned(),
    )
}

fn decode_pieces<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Plain>, Option<Duration>) {
    let mut decoder = SseDecoder::new(1 << 20);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(decoder.push(piece).unwrap().iter().map(plain));
    }
    (events, decoder.retry())
}

fn data_of(pieces: &[&str]) -> Vec<String> {
    decode_pieces(pieces.iter().map(|piece| piece.as_bytes()))
        .0
        .into_iter()
        .map(|(_, data, _)| data)
        .collect()
}

/// The specification's steps over a complete text, written for plainness: an independent second opinion.
fn reference(bytes: &[u8]) -> (Vec<Plain>, Option<Duration>) {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<&str> = text.split('\n').collect();
    lines.pop();
    let (mut events, mut data, mut kind, mut id, mut retry) =
        (vec![], String::new(), String::new(), String::new(), None);
    for line in lines {
        if line.is_empty() {
            if !data.is_empty() {
                let event_type = if kind.is_empty() { "message" } else { &kind };
                events.push((
                    event_type.to_owned(),
                    data[..data.len() - 1].to_owned(),
                    id.clone(),
                ));
            }
            data.clear();
            kind.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => data = data + value + "\n",
            "event" => kind = value.to_owned(),
            "id" if !value.contains('\0') => id = value.to_owned(),
            "retry" if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => {
                retry = Some(Duration::from_millis(value.parse().unwrap_or(u64::MAX)));
            }
            _ => {}
        }
    }
    (events, retry)
}

#[test]
fn a_crlf_that_is_cut_between_pieces_is_one_line_end() {
    let (events, _) = decode_pieces([&b"event: added\r"[..], b"\ndata: {\"a\":1}\r", b"\n\r", b"\n"]);
    assert_eq!(events, [("added".into(), "{\"a\":1}".into(), String::new())]);
}

#[test]
fn a_lone_carriage_return_dispatches_at_once() {
    assert_eq!(data_of(&["data: x\r\r"]), ["x"]);
    let mut decoder = SseDecoder::new(100);
    assert_eq!(decoder.push(b"data: x\r\r").unwrap().len(), 1);
    assert_eq!(decoder.push(b"\ndata: y\r").unwrap().len(), 0);
    assert_eq!(decoder.push(b"\n\r").unwrap().len(), 1);
}

#[test]
fn line_ends_may_be_mixed() {
    assert_eq!(data_of(&["data: x\r\ndata: y\r\r\n\r\n"]), ["x\ny"]);
    assert_eq!(data_of(&["data: x\n\rdata: y\r\n\n"]), ["x", "y"]);
    assert_eq!(data_of(&["data: x\rdata: y\n\r\n"]), ["x\ny"]);
}

#[test]
fn fields_are_read_as_the_specification_says() {
    for (stream, expected) in [
        ("data:x\n\n", vec!["x"]),
        ("data:  x\n\n", vec![" x"]),
        ("data: x \n\n", vec!["x "]),
        ("data\n\n", vec![""]),
        ("data:\n\n", vec![""]),
        ("data\ndata\n\n", vec!["\n"]),
        ("data: a:b: c\n\n", vec!["a:b: c"]),
        ("Data: x\n\n", vec![]),
        (" data: x\n\n", vec![]),
        ("data : x\n\n", vec![]),
        (": comment\n\n", vec![]),
        (":data: x\ndata: y\n\n", vec!["y"]),
        ("event: only\n\ndata: x\n\n", vec!["x"]),
        ("unknown: x\ndata: y\n\n", vec!["y"]),
        ("data: not complete\n", vec![]),
        ("data: not complete", vec![]),
        ("\u{FEFF}data: x\n\n", vec!["x"]),
        ("\u{FEFF}\u{FEFF}data: x\n\n", vec![]),
        ("data: x\n\n\u{FEFF}data: y\n\n", vec!["x"]),
        ("\n\n\n", vec![]),
        ("data: a\0b\n\n", vec!["a\0b"]),
    ] {
        assert_eq!(data_of(&[stream]), expected, "{stream:?}");
    }
}

#[test]
fn the_type_lasts_for_one_event_and_the_id_for_all_that_follow() {
    let (events, _) = decode_pieces([
        &b"event: a\nid: 1\ndata: x\n\ndata: y\n\nid: 2\0\ndata: z\n\nid\nevent: b\nevent\ndata: w\n\n"[..],
    ]);
    let found: Vec<_> = events
        .iter()
        .map(|(kind, data, id)| (&**kind, &**data, &**id))
        .collect();
    assert_eq!(
        found,
        [
            ("a", "x", "1"),
            ("message", "y", "1"),
            ("message", "z", "1"),
            ("message", "w", "")
        ]
    );
}

#[test]
fn a_retry_is_taken_from_digits_alone_and_without_an_event() {
    for (stream, expected) in [
        ("retry: 1501\n", Some(1501)),
        ("retry:0\n", Some(0)),
        ("retry: 007\n", Some(7)),
        ("retry: 5\nretry: x\n", Some(5)),
        ("retry: -1\n", None),
        ("retry: 1.5\n", None),
        ("retry: 1 \n", None),
        ("retry:  1\n", None),
        ("retry\n", None),
        ("retry: 3", None),
        ("retry: 99999999999999999999999\n", Some(u64::MAX)),
    ] {
        let (events, retry) = decode_pieces([stream.as_bytes()]);
        assert!(events.is_empty());
        assert_eq!(retry, expected.map(Duration::from_millis), "{stream:?}");
    }
}

#[test]
fn bytes_that_are_no_utf8_become_replacement_characters_wherever_they_are_cut() {
    let stream = b"data: \xC3\xA9\xE6\x97\xA5\xF0\x9F\x98\x80 \xE2\x82\ndata: \xFF\xC3\n\n";
    let expected = "\u{e9}\u{65e5}\u{1F600} \u{FFFD}\n\u{FFFD}\u{FFFD}";
    for cut in 0..=stream.len() {
        let (events, _) = decode_pieces([&stream[..cut], &stream[cut..]]);
        assert_eq!(events[0].1, expected, "cut at {cut}");
    }
}

#[test]
fn carried_json_with_line_ends_arrives_as_one_event_with_the_same_tokens() {
    for json in [
        "{\"kind\":\"ConfigMap\",\r\"n\":1}",
        "{\"kind\":\"ConfigMap\",\r\n\"n\":1E5}",
        "{\n  \"kind\": \"Config Map\",\n  \"n\": [ 1.10,\n -0 ]\n}",
        "\r\n{\"a\":\"\\r\\n\\ud800\"}\r",
    ] {
        let mut wire = Vec::new();
        frame::begin(&mut wire, 1, EventType::Added);
        wire.extend_from_slice(b",\"object\":");
        frame::put_json(&mut wire, json.as_bytes());
        frame::end(&mut wire);
        assert!(!wire.contains(&b'\r'), "{json:?}");
        let (events, _) = reference(&wire);
        assert_eq!(events, decode_pieces([&wire[..]]).0);
        let [(_, data, _)] = &events[..] else {
            panic!("{json:?} became {events:?}");
        };
        crate::json::validate(data.as_bytes()).unwrap();
        let object = crate::json::last_member(data.as_bytes(), "object").unwrap();
        let tokens = |json: &[u8]| {
            let outside = json.split(|byte| *byte == b'"').enumerate().map(|(index, part)| {
                let is_string = index % 2 == 1;
                part.iter()
                    .copied()
                    .filter(|byte| is_string || !byte.is_ascii_whitespace())
                    .collect::<Vec<_>>()
            });
            outside.collect::<Vec<_>>()
        };
        assert_eq!(tokens(object), tokens(json.as_bytes()), "{json:?}");
    }
}

/// Twenty events in all the ways that a stream may spell them.
fn twenty_events() -> Vec<u8> {
    let mut stream = b"\xEF\xBB\xBF: begin\r\n\r\n".to_vec();
    for number in 0..20 {
        let end = ["\n", "\r", "\r\n"][number % 3];
        let other = ["\r\n", "\n", "\r"][(number / 3) % 3];
        stream.extend_from_slice(
            format!(
                "id: {number}{end}event: added{other}data: {{\"seq\":{number},\"name\":\"\u{e9}\u{1F600}\"{end}data:}}{other}retry: {number}{end}{end}"
            )
            .as_bytes(),
        );
    }
    // The last line end stays whole, so that no cut leaves the last event without its blank line.
    stream.extend_from_slice(b"\n: heartbeat\n\n");
    stream
}

#[test]
fn every_cut_point_and_single_bytes_give_the_same_events() {
    let stream = twenty_events();
    let expected = reference(&stream);
    assert_eq!(expected.0.len(), 20);
    for cut in 0..=stream.len() {
        assert_eq!(
            decode_pieces([&stream[..cut], &stream[cut..]]),
            expected,
            "cut at {cut}"
        );
    }
    assert_eq!(decode_pieces(stream.chunks(1)), expected);
    assert_eq!(decode_pieces(stream.chunks(2)), expected);
}

#[test]
fn an_event_over_the_limit_names_the_limit_and_ends_the_decoder() {
    for stream in [
        &b"data: ok\n\ndata: 0123456789"[..],
        b"data: ok\n\ndata: 01\ndata: 23\ndata: 45\ndata: 6",
        b"data: ok\n\n: 01234567890123456789",
        b"data: ok\n\nevent: 01234567\ndata: 0",
    ] {
        for piece in [1, 3, stream.len()] {
            let mut decoder = SseDecoder::new(14);
            let mut events = Vec::new();
            let mut errors = 0;
            for part in stream.chunks(piece) {
                match decoder.push(part) {
                    Ok(complete) => events.extend(complete),
                    Err(error) => {
                        assert_eq!(error.limit(), 14);
                        assert!(error.to_string().contains("14 bytes"));
                        events.extend(error.into_decoded());
                        errors += 1;
                    }
                }
            }
            assert!(errors > 0, "{stream:?} in pieces of {piece}");
            assert_eq!(events.len(), 1);
            assert_eq!(events[0].data(), "ok");
            let error = decoder.push(b"\n\ndata: later\n\n").unwrap_err();
            assert!(error.into_decoded().is_empty());
        }
    }
    let mut decoder = SseDecoder::new(14);
    assert_eq!(decoder.push(b"data: 01234567\n\n").unwrap().len(), 1);
    assert_eq!(decoder.push(b"data: 01234567\n\n").unwrap().len(), 1);
}

#[test]
fn debug_shows_no_data() {
    let mut decoder = SseDecoder::new(100);
    let events = decoder.push(b"data: canary\n\ndata: canary").unwrap();
    assert!(!format!("{events:?} {decoder:?}").contains("canary"));
}

proptest! {
    #[test]
    fn any_stream_in_any_pieces_is_decoded_as_the_reference_decodes_it(
        parts in proptest::collection::vec(prop_oneof![
            4 => Just(&b"data: "[..]), 2 => Just(&b"data"[..]), 1 => Just(&b"event:"[..]), 1 => Just(&b"id: "[..]),
            1 => Just(&b"retry: "[..]), 4 => Just(&b"\n"[..]), 4 => Just(&b"\r"[..]), 4 => Just(&b"\r\n"[..]),
            1 => Just(&b":"[..]), 1 => Just(&b" "[..]), 1 => Just(&b"12"[..]), 2 => Just(&b"x"[..]),
            1 => Just(&b"\xEF\xBB\xBF"[..]), 1 => Just(&b"\xC3\xA9"[..]), 1 => Just(&b"\xE2\x82"[..]),
            1 => Just(&b"\xF0"[..]), 1 => Just(&b"\0"[..]),
        ], 0..60),
        cuts in proptest::collection::vec(1..9_usize, 0..40),
    ) {
        let stream = parts.concat();
        let mut pieces = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(decode_pieces(pieces), reference(&stream));
    }

    #[test]
    fn any_bytes_with_any_limit_are_decoded_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        limit in 0..64_usize,
        piece in 1..20_usize,
    ) {
        let mut decoder = SseDecoder::new(limit);
        for part in bytes.chunks(piece) {
            let _ = decoder.push(part);
        }
    }
}
