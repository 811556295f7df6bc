//! Tests of the merge-patch guard.

use super::*;
use crate::GroupResource;

fn scope(group: &str, resource: &str) -> Scope {
    let mut builder = Scope::builder("v1", resource);
    if !group.is_empty() {
        builder = builder.group(group);
    }
    builder.build().unwrap()
}

/// What the guard says, in one word and a path.
fn check(projection: &Projection, scope: &Scope, kind: &str, editor: Editor, patch: &str) -> String {
    match validate_merge_patch(projection, scope, kind, editor, patch.as_bytes()) {
        Ok(()) => "ok".to_owned(),
        Err(PatchViolation::Json(_)) => "not json".to_owned(),
        Err(PatchViolation::NotAnObject) => "no object".to_owned(),
        Err(PatchViolation::Removed { path }) => format!("removed {path}"),
        Err(PatchViolation::Redacted { path }) => format!("redacted {path}"),
        Err(PatchViolation::Replaces { path }) => format!("replaces {path}"),
    }
}

fn secret(editor: Editor, patch: &str) -> String {
    check(&Projection::full(), &scope("", "secrets"), "", editor, patch)
}

#[test]
fn what_the_projection_carries_may_be_patched_in_both_forms() {
    for editor in [Editor::Projected, Editor::Native] {
        for patch in [
            "{}",
            " {\n} ",
            r#"{"type":"Opaque","immutable":true}"#,
            r#"{"metadata":{"labels":null,"annotations":{"team":null,"x":"y"},"resourceVersion":"7"}}"#,
            r#"{"metadata":{"annotations":{}}}"#,
            r#"{"unknown":{"data":null},"spec":[1,{"data":1}]}"#,
        ] {
            assert_eq!(secret(editor, patch), "ok", "{patch}");
        }
    }
}

#[test]
fn what_the_projection_removes_may_be_touched_in_neither_form() {
    let last_applied = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
    for editor in [Editor::Projected, Editor::Native] {
        for (patch, expected) in [
            (
                r#"{"metadata":{"managedFields":null}}"#,
                "removed /metadata/managedFields",
            ),
            (
                r#"{"metadata":{"managedFields":[{}]}}"#,
                "removed /metadata/managedFields",
            ),
            (
                r#"{"metad\u0061ta":{"managed\u0046ields":[]}}"#,
                "removed /metadata/managedFields",
            ),
            (
                r#"{"metadata":{},"metadata":{"managedFields":[]}}"#,
                "removed /metadata/managedFields",
            ),
            (r#"{"metadata":null}"#, "replaces /metadata"),
            (r#"{"metadata":[]}"#, "replaces /metadata"),
            (
                r#"{"metadata":{"annotations":null}}"#,
                "replaces /metadata/annotations",
            ),
            (
                r#"{"metadata":{"annotations":"x"}}"#,
                "replaces /metadata/annotations",
            ),
        ] {
            assert_eq!(secret(editor, patch), expected, "{patch}");
        }
        let patch =
            r#"{"metadata":{"annotations":{"kubectl.kubernetes.io\/last-applied-configuration":null}}}"#;
        assert_eq!(secret(editor, patch), format!("removed {last_applied}"));
        let status = r#"{"status":{}}"#;
        let deployments = scope("apps", "deployments");
        assert_eq!(
            check(&Projection::spec(), &deployments, "", editor, status),
            "removed /status"
        );
        assert_eq!(check(&Projection::full(), &deployments, "", editor, status), "ok");
    }
}

#[test]
fn a_projected_editor_keeps_off_withheld_values_and_what_holds_them() {
    for (patch, expected) in [
        (r#"{"data":null}"#, "redacted /data"),
        (r#"{"data":{}}"#, "redacted /data"),
        (r#"{"data":{"token":"QQ=="}}"#, "redacted /data"),
        (r#"{"data":{"token":null}}"#, "redacted /data"),
        (r#"{"d\u0061ta":{"t":null}}"#, "redacted /data"),
        (r#"{"data":"x"}"#, "redacted /data"),
        (r#"{"type":"x","stringData":{"a":"b"}}"#, "redacted /stringData"),
        (r#"{"binaryData":[]}"#, "redacted /binaryData"),
    ] {
        assert_eq!(secret(Editor::Projected, patch), expected, "{patch}");
    }
}

#[test]
fn a_native_editor_writes_withheld_values_by_name_and_never_sweeps_them_away() {
    for (patch, expected) in [
        (r#"{"data":{"token":"QQ==","old":null}}"#, "ok"),
        (r#"{"stringData":{"token":"x"}}"#, "ok"),
        (r#"{"data":{}}"#, "ok"),
        (r#"{"data":null}"#, "replaces /data"),
        (r#"{"data":{"a":"QQ=="},"data":null}"#, "replaces /data"),
        (r#"{"data":[]}"#, "replaces /data"),
        (r#"{"stringData":"x"}"#, "replaces /stringData"),
    ] {
        assert_eq!(secret(Editor::Native, patch), expected, "{patch}");
    }
}

#[test]
fn a_secret_is_one_by_scope_by_kind_or_by_what_the_patch_says() {
    let other = scope("example.io", "vaults");
    let full = Projection::full();
    let patch = r#"{"data":null}"#;
    assert_eq!(check(&full, &other, "", Editor::Projected, patch), "ok");
    assert_eq!(
        check(&full, &other, "Secret", Editor::Projected, patch),
        "redacted /data"
    );
    let says = r#"{"data":null,"kind":"Secret","k\u0069nd":"Vault"}"#;
    assert_eq!(
        check(&full, &other, "", Editor::Projected, says),
        "redacted /data"
    );
    assert_eq!(
        check(
            &Projection::raw(),
            &scope("", "secrets"),
            "Secret",
            Editor::Projected,
            patch
        ),
        "ok"
    );
}

#[test]
fn rules_within_arrays_guard_the_whole_array() {
    let of_widgets = GroupResource::new("example.io", "widgets");
    let projection = Projection::define("example.io/v1")
        .redact_path(of_widgets.clone(), "/spec/users/*/password")
        .remove_path(of_widgets, "/spec/hosts/0/note")
        .build()
        .unwrap();
    let widgets = scope("example.io", "widgets");
    for (patch, projected, native) in [
        (
            r#"{"spec":{"users":[{"name":"a","password":"b"}]}}"#,
            "replaces /spec/users",
            "ok",
        ),
        (
            r#"{"spec":{"users":null}}"#,
            "replaces /spec/users",
            "replaces /spec/users",
        ),
        (
            r#"{"spec":{"users":{"a":{"password":"x"}}}}"#,
            "redacted /spec/users/a/password",
            "ok",
        ),
        (r#"{"spec":{"users":{"a":{"name":"x"}}}}"#, "ok", "ok"),
        (
            r#"{"spec":{"hosts":[]}}"#,
            "replaces /spec/hosts",
            "replaces /spec/hosts",
        ),
        (r#"{"spec":{"other":[]}}"#, "ok", "ok"),
        (r#"{"spec":7}"#, "replaces /spec", "replaces /spec"),
    ] {
        assert_eq!(
            check(&projection, &widgets, "", Editor::Projected, patch),
            projected,
            "{patch}"
        );
        assert_eq!(
            check(&projection, &widgets, "", Editor::Native, patch),
            native,
            "{patch}"
        );
    }
    let elsewhere = scope("example.io", "gadgets");
    assert_eq!(
        check(&projection, &elsewhere, "", Editor::Projected, r#"{"spec":null}"#),
        "ok"
    );
}

#[test]
fn what_is_no_patch_is_refused() {
    for (patch, expected) in [
        ("", "not json"),
        ("{", "not json"),
        (r#"{"a":1}{"#, "not json"),
        ("null", "no object"),
        ("[]", "no object"),
        ("\"data\"", "no object"),
    ] {
        assert_eq!(secret(Editor::Native, patch), expected, "{patch}");
    }
}

#[test]
fn a_patch_of_any_depth_is_checked_on_a_small_stack() {
    let walk = || {
        let deep = format!("{}1{}", r#"{"metadata":"#.repeat(100_000), "}".repeat(100_000));
        assert_eq!(secret(Editor::Native, &deep), "ok");
        let last = format!("{},\"data\":null}}", &deep[..deep.len() - 1]);
        assert_eq!(secret(Editor::Native, &last), "replaces /data");
    };
    let thread = std::thread::Builder::new().stack_size(512 * 1024).spawn(walk);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_violation_names_paths_and_no_values() {
    let patch = r#"{"data":{"token":"canary-value"}}"#;
    let violation = validate_merge_patch(
        &Projection::full(),
        &scope("", "secrets"),
        "Secret",
        Editor::Projected,
        patch.as_bytes(),
    )
    .unwrap_err();
    let shown = format!("{violation} {violation:?}");
    assert!(shown.contains("/data") && !shown.contains("canary"), "{shown}");
}
