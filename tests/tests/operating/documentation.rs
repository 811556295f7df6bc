//! What the pages of documentation say of the kit.

use std::collections::BTreeSet;

use crate::files::{document, path, text};
use crate::metrics::{alerts, exposition, names};

/// The words in back quotes.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .collect()
}

#[test]
fn the_page_tells_of_each_metric_and_of_no_other() {
    let page = text("docs/operating.md");
    let there = names(&exposition());
    for name in &there {
        assert!(page.contains(name.as_str()), "{name} is not in docs/operating.md");
    }
    for word in quoted(&page) {
        let metric = word.split(['{', ' ']).next().unwrap_or_default();
        if metric.starts_with("krm_stream_") || metric.starts_with("watch_sessions") {
            let family = metric
                .trim_end_matches("_count")
                .trim_end_matches("_bucket")
                .trim_end_matches("_sum");
            assert!(there.contains(family), "{word} is no metric");
        }
    }
}

#[test]
fn the_page_tells_of_each_alert() {
    let page = text("docs/operating.md");
    for alert in alerts() {
        let name = alert["alert"].as_str().expect("an alert has a name");
        assert!(
            page.contains(&format!("`{name}`")),
            "{name} is not in docs/operating.md"
        );
    }
}

#[test]
fn the_table_of_contents_names_every_page() {
    let contents = text("docs/README.md");
    for entry in std::fs::read_dir(path("docs")).expect("the folder can be read") {
        let name = entry.expect("the folder can be read").file_name();
        let name = name.to_string_lossy();
        if name.ends_with(".md") && name != "README.md" {
            assert!(contents.contains(&format!("({name})")), "docs/README.md: {name}");
        }
    }
    for (_, link) in contents.split("](").skip(1).filter_map(|rest| {
        let (link, rest) = rest.split_once(')')?;
        Some((rest, link))
    }) {
        let file = link.split('#').next().unwrap_or(link);
        assert!(path("docs").join(file).exists(), "docs/README.md: {link}");
    }
}

#[test]
fn the_definition_that_is_installed_is_the_crates_own() {
    let component = document("deploy/kustomize/components/declared-streams/kustomization.yaml");
    assert_eq!(component["resources"][0], "../../../../crates/declared/crd");
    let list = document("crates/declared/crd/kustomization.yaml");
    assert_eq!(list["resources"][0], "declaredstreams.krm-stream.github.io.json");
}
