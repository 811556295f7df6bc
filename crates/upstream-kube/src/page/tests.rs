//! Pages as API servers send them.

use super::*;

fn page(text: &str) -> Page {
    match Page::read(Bytes::copy_from_slice(text.as_bytes())).unwrap() {
        ListBody::Page(page) => page,
        ListBody::Status(status) => panic!("{status:?}"),
    }
}

fn items(mut page: Page) -> Vec<String> {
    std::iter::from_fn(|| page.next_item())
        .map(|item| String::from_utf8(item.unwrap().json().to_vec()).unwrap())
        .collect()
}

#[test]
fn items_of_a_typed_list_get_kind_and_api_version_in_front_and_stay_verbatim() {
    let item = r#"{"metadata":{"name":"s","uid":"u1"},"data":{"p":"QUFB"},"n":1E5}"#;
    let text = format!(
        r#"{{"kind":"SecretList","apiVersion":"v1","metadata":{{"resourceVersion":"10"}},"items":[{item}, {{}} ]}}"#
    );
    let page = page(&text);
    assert_eq!(page.resource_version.as_ref().unwrap().as_str(), "10");
    assert_eq!(
        items(page),
        [
            format!(r#"{{"kind":"Secret","apiVersion":"v1",{}"#, &item[1..]),
            r#"{"kind":"Secret","apiVersion":"v1"}"#.to_owned()
        ]
    );
}

#[test]
fn what_an_item_says_itself_is_not_said_again() {
    let own = r#"{"apiVersion":"example.org/v1","k\u0069nd":"Widget","metadata":{}}"#;
    let half = r#"{"kind":"Widget","metadata":{}}"#;
    let text = format!(
        r#"{{"kind":"WidgetList","apiVersion":"example.org/v1","metadata":{{}},"items":[{own},{half}]}}"#
    );
    assert_eq!(
        items(page(&text)),
        [
            own.to_owned(),
            r#"{"apiVersion":"example.org/v1","kind":"Widget","metadata":{}}"#.to_owned()
        ]
    );
}

#[test]
fn a_bare_list_of_mixed_items_adds_nothing() {
    let mixed = [
        r#"{"kind":"Secret","metadata":{"name":"s"}}"#,
        r#"{"metadata":{"name":"x"}}"#,
    ];
    let text = format!(
        r#"{{"kind":"List","apiVersion":"v1","metadata":{{}},"items":[{}]}}"#,
        mixed.join(",")
    );
    assert_eq!(items(page(&text)), mixed);
}

#[test]
fn an_empty_or_null_continue_ends_the_list_and_a_filled_one_goes_on() {
    let next = |token: &str| {
        page(&format!(
            r#"{{"kind":"XList","metadata":{{"resourceVersion":"1","continue":{token}}},"items":null}}"#
        ))
        .next
    };
    assert_eq!(next(r#""""#), None);
    assert_eq!(next("null"), None);
    assert_eq!(next(r#""a\u003db""#).as_deref(), Some("a=b"));
    assert_eq!(page(r#"{"metadata":{}}"#).next, None);
}

#[test]
fn a_pretty_printed_page_is_read_as_well() {
    let text = "{\n  \"kind\": \"PodList\",\n  \"metadata\": {\n    \"resourceVersion\": \"3\"\n  },\n  \"items\": [\n    {\n      \"metadata\": {\"uid\": \"u\", \"name\": \"n\"}\n    }\n  ]\n}\n";
    let mut page = page(text);
    let object = page.next_item().unwrap().unwrap();
    assert_eq!(&*object.identity().unwrap().kind, "Pod");
    assert!(page.next_item().is_none());
}

#[test]
fn a_status_with_a_success_code_is_told_from_a_page() {
    let body = Page::read(Bytes::from_static(
        br#"{"kind":"Status","code":403,"metadata":{}}"#,
    ))
    .unwrap();
    assert!(matches!(body, ListBody::Status(status) if status.code == Some(403)));
}

#[test]
fn what_is_no_list_is_an_error_and_so_is_an_item_that_is_no_object() {
    assert!(matches!(
        Page::read(Bytes::from_static(b"<html>")),
        Err(PageError::NotJson(_))
    ));
    for text in ["[]", "5", "{}", r#"{"metadata":null}"#] {
        assert!(
            matches!(
                Page::read(Bytes::copy_from_slice(text.as_bytes())),
                Err(PageError::NoList)
            ),
            "{text}"
        );
    }
    let mut odd = page(r#"{"kind":"XList","metadata":{},"items":[null,{"metadata":{}}]}"#);
    assert!(matches!(odd.next_item(), Some(Err(PageError::OddItem))));
    assert!(matches!(odd.next_item(), Some(Ok(_))));
}
