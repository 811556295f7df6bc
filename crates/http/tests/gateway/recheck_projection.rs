//! Checks of a stream that is still opening, and the projection that they find granted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use krm_stream_http::{Gateway, GatewayBuilder};
use krm_stream_protocol::{
    Principal, ProjectionName, SessionEnd, Subject, UpstreamError, UpstreamErrorKind, WatchEvent,
};

use super::support::{
    AskedAuthorizer, Connection, MOMENT, OpenRequest, QUERY, Questions, Script, ScriptedUpstream, Seam,
    builder, code_of, config_map, get, is_opening, nothing_comes, scope, text_of,
};

const FULL: &str = "krm-full/v1";
const SPEC: &str = "krm-spec/v1";

/// What the projection policy grants.
#[derive(Clone)]
struct Granted(Arc<Mutex<&'static str>>);

impl Granted {
    fn is_now(&self, name: &'static str) {
        *self.0.lock().unwrap() = name;
    }
}

/// A gateway that grants one projection after the other, and whose checks the test answers.
fn granting(name: &'static str) -> (GatewayBuilder, Granted, Questions, Script) {
    let (upstream, script) = ScriptedUpstream::new();
    let (authorizer, questions) = AskedAuthorizer::new();
    let granted = Granted(Arc::new(Mutex::new(name)));
    let policy = {
        let granted = granted.clone();
        Seam::new(move |_| Some(Ok(ProjectionName::new(*granted.0.lock().unwrap()))))
    };
    let builder = builder(&upstream)
        .authorizer(authorizer)
        .projection_policy(policy);
    (builder, granted, questions, script)
}

/// It is checked again, and allowed.
async fn is_checked(gateway: &Gateway, connection: &mut Connection, questions: &mut Questions) {
    gateway.recheck(|_, _| true);
    nothing_comes(connection, MOMENT).await;
    questions.allow_next().await;
}

/// It is told to come back, and gets nothing else.
async fn ends_for_another_projection(connection: &mut Connection) {
    let before = connection.raw().len();
    let event = connection.events(1).await.remove(0);
    assert_eq!(code_of(&event), "INTERNAL");
    assert!(event.contains("connect again"), "{event}");
    assert!(event.contains("\"terminal\":false"), "{event}");
    assert_eq!(connection.next().await, None);
    let came = String::from_utf8_lossy(&connection.raw()[before..]).into_owned();
    assert!(!came.contains("canary"), "{came}");
}

#[tokio::test(start_paused = true)]
async fn a_projection_that_is_taken_away_while_the_upstream_opens_is_not_served() {
    // When the check is answered: before the upstream opens, or when the stream has its feed already.
    for is_answered_first in [true, false] {
        let (builder, granted, mut questions, mut script) = granting(FULL);
        let gateway = builder.build().unwrap();
        let mut connection = get(&gateway, QUERY);
        let opening = is_opening(&mut connection, &mut questions, &mut script).await;
        granted.is_now(SPEC);
        assert_eq!(gateway.recheck(|_, _| true), 1);
        nothing_comes(&mut connection, MOMENT).await;
        let question = questions.next().await;
        let accept = || opening.accept_with([config_map("canary", 1, "v")], "1");
        let _session = if is_answered_first {
            question.answer(Ok(()));
            nothing_comes(&mut connection, MOMENT).await;
            accept()
        } else {
            let session = accept();
            nothing_comes(&mut connection, MOMENT).await;
            question.answer(Ok(()));
            session
        };
        ends_for_another_projection(&mut connection).await;
        tokio::time::sleep(MOMENT).await;
        assert_eq!(gateway.feeds().count(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_on_time_finds_it_too() {
    let (builder, granted, mut questions, mut script) = granting(FULL);
    let gateway = builder
        .write_timeout(Duration::from_secs(30))
        .reauthorization_interval(Duration::from_secs(4))
        .build()
        .unwrap();
    // Without HTTP, since delivery need not be bounded there.
    let principal = Principal::new(Subject::new("ada").unwrap());
    let frames = gateway.stream(principal, scope(QUERY), None);
    let reading = frames
        .map(|frame| String::from_utf8(frame.json().to_vec()).unwrap())
        .collect::<Vec<_>>();
    let changing = async {
        questions.allow_next().await;
        let opening = script.next_open().await;
        granted.is_now(SPEC);
        questions.allow_next().await;
        tokio::time::sleep(MOMENT).await;
        opening.accept_with([config_map("canary", 1, "v")], "1")
    };
    let (events, _session) = tokio::join!(reading, changing);
    let [event] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(code_of(event), "INTERNAL");
}

#[tokio::test(start_paused = true)]
async fn a_projection_that_changes_between_two_checks_of_an_opening_stream_ends_it_at_once() {
    let (builder, granted, mut questions, mut script) = granting(FULL);
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let opening = is_opening(&mut connection, &mut questions, &mut script).await;
    for name in [FULL, SPEC] {
        granted.is_now(name);
        is_checked(&gateway, &mut connection, &mut questions).await;
        if name == FULL {
            nothing_comes(&mut connection, MOMENT).await;
        }
    }
    ends_for_another_projection(&mut connection).await;
    tokio::time::sleep(MOMENT).await;
    assert!(opening.is_abandoned());
}

#[tokio::test(start_paused = true)]
async fn a_projection_that_stays_is_served_after_any_number_of_checks() {
    let (builder, _granted, mut questions, mut script) = granting(FULL);
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let opening = is_opening(&mut connection, &mut questions, &mut script).await;
    for _ in 0..3 {
        is_checked(&gateway, &mut connection, &mut questions).await;
        nothing_comes(&mut connection, MOMENT).await;
    }
    let _session = opening.accept_with([config_map("a", 1, "v")], "1");
    assert_eq!(connection.types(3).await, ["reset", "added", "synced"]);
    is_checked(&gateway, &mut connection, &mut questions).await;
    nothing_comes(&mut connection, MOMENT).await;
}

/// Opens a stream under `krm-full/v1`, has its feed refused, and lets its second cycle begin, for which `second` is granted.
async fn in_its_second_cycle(
    connection: &mut Connection,
    granted: &Granted,
    second: &'static str,
    questions: &mut Questions,
    script: &mut Script,
) -> OpenRequest {
    let (events, session) = tokio::join!(connection.events(2), async {
        questions.allow_next().await;
        script.next_open().await.accept_with([], "1")
    });
    assert_eq!(text_of(&events[0], "projection").unwrap(), FULL);
    nothing_comes(connection, Duration::from_mins(1)).await;
    granted.is_now(second);
    session.end(SessionEnd::Closed);
    let ((), opening) = tokio::join!(nothing_comes(connection, MOMENT), async {
        let error = UpstreamError::new(UpstreamErrorKind::Unauthenticated);
        script.next_open().await.refuse(error);
        questions.allow_next().await;
        script.next_open().await
    });
    opening
}

#[tokio::test(start_paused = true)]
async fn a_later_cycle_is_held_to_its_own_projection_and_not_to_the_one_before() {
    let (builder, granted, mut questions, mut script) = granting(FULL);
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let opening = in_its_second_cycle(&mut connection, &granted, SPEC, &mut questions, &mut script).await;
    is_checked(&gateway, &mut connection, &mut questions).await;
    nothing_comes(&mut connection, MOMENT).await;
    let session = opening.accept_with([config_map("a", 2, "v")], "2");
    let events = connection.events(4).await;
    assert_eq!(code_of(&events[0]), "RESYNC_REQUIRED");
    assert_eq!(text_of(&events[1], "projection").unwrap(), SPEC);
    // And to that one, from then on.
    granted.is_now(FULL);
    session.send(WatchEvent::Added(config_map("canary", 3, "w")));
    is_checked(&gateway, &mut connection, &mut questions).await;
    ends_for_another_projection(&mut connection).await;
}

#[tokio::test(start_paused = true)]
async fn a_later_cycle_that_goes_back_to_the_first_projection_while_it_opens_ends() {
    let (builder, granted, mut questions, mut script) = granting(FULL);
    let gateway = builder.build().unwrap();
    let mut connection = get(&gateway, QUERY);
    let opening = in_its_second_cycle(&mut connection, &granted, SPEC, &mut questions, &mut script).await;
    granted.is_now(FULL);
    is_checked(&gateway, &mut connection, &mut questions).await;
    nothing_comes(&mut connection, MOMENT).await;
    let _session = opening.accept_with([config_map("canary", 2, "v")], "2");
    ends_for_another_projection(&mut connection).await;
}
