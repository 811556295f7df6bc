//! What every `Cargo.toml`, README, licence file and the change log must have.

use std::collections::BTreeSet;
use std::path::Path;

use toml::{Table, Value};

use super::edges::Member;
use super::{Finding, TidyError};
use crate::files;

const LICENCE: &str = "LICENSE";
const DEPENDENCIES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// All members' manifests, the workspace's own, and the files that go with them.
pub(super) fn check(root: &Path, members: &[&Member]) -> Result<Vec<Finding>, TidyError> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    let licence = files::read(&root.join(LICENCE))?;
    for member in members {
        let manifest = parse(&member.manifest, &member.manifest_text)?;
        findings.extend(member_manifest(&member.manifest, &manifest));
        used.extend(
            dependency_tables(&manifest)
                .into_iter()
                .flat_map(Table::keys)
                .cloned(),
        );
        if member.is_library() {
            findings.extend(library_manifest(&member.manifest, &manifest));
        }
        if member.is_library() && !root.join(&member.manifest).with_file_name("README.md").is_file() {
            let message = "the library has no README.md; write what it is for, and what it is not";
            findings.push(Finding::error(&member.manifest, None, message));
        }
        if member.is_library() {
            let own = files::read(&root.join(&member.manifest).with_file_name(LICENCE)).ok();
            findings.extend(licence_file(&member.manifest, own.as_deref(), &licence));
        }
    }
    let path = Path::new("Cargo.toml");
    findings.extend(workspace_dependencies(
        path,
        &files::read(&root.join(path))?,
        &used,
    ));
    findings.extend(change_log(
        &files::read(&root.join("CHANGELOG.md")).unwrap_or_default(),
    ));
    Ok(findings)
}

/// A package holds what is in its folder: without a licence there, it is published without its text.
fn licence_file(path: &Path, own: Option<&str>, licence: &str) -> Option<Finding> {
    let message = match own {
        Some(own) if own == licence => return None,
        Some(_) => {
            "the library's LICENSE is not that of the workspace; put a link in its place: ln -s ../../LICENSE"
        }
        None => "the library has no LICENSE in its folder; put a link there: ln -s ../../LICENSE",
    };
    Some(Finding::error(path, None, message))
}

fn parse(path: &Path, text: &str) -> Result<Table, TidyError> {
    text.parse::<Table>().map_err(|error| TidyError::Manifest {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

fn member_manifest(path: &Path, manifest: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
    if lints != Some(&Value::Boolean(true)) {
        findings.push(Finding::error(
            path,
            None,
            "the workspace's lints are off; add: [lints] workspace = true",
        ));
    }
    for (name, dependency) in dependency_tables(manifest).into_iter().flatten() {
        if dependency.get("workspace") != Some(&Value::Boolean(true)) {
            let message = format!(
                "{name} has a version of its own; name it, with its reason, in [workspace.dependencies] of the root, \
                 and write here: {name} = {{ workspace = true }}"
            );
            findings.push(Finding::error(path, None, message));
        }
    }
    findings
}

/// What a library must say of itself, so that it can be published, found and documented.
///
/// Keywords: at most 5, each of at most 20 characters
/// (<https://doc.rust-lang.org/cargo/reference/manifest.html#the-keywords-field>).
fn library_manifest(path: &Path, manifest: &Table) -> Vec<Finding> {
    let package = manifest.get("package").and_then(Value::as_table);
    let field = |name: &str| package.and_then(|package| package.get(name));
    let mut findings = Vec::new();
    for name in ["description", "license", "repository", "documentation", "readme"] {
        if field(name).is_none() {
            findings.push(Finding::error(
                path,
                None,
                format!("the library has no {name}; add it to [package]"),
            ));
        }
    }
    for name in ["keywords", "categories"] {
        let words: Vec<&str> = field(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if words.is_empty() || words.len() > 5 {
            let message = format!(
                "the library has {} {name}; name one to five of its own",
                words.len()
            );
            findings.push(Finding::error(path, None, message));
        }
        if name == "keywords" {
            let too_long = words.iter().filter(|word| word.len() > 20);
            findings.extend(too_long.map(|word| {
                Finding::error(
                    path,
                    None,
                    format!("the keyword {word} is longer than 20 characters"),
                )
            }));
        }
    }
    let docs = field("metadata").and_then(|metadata| metadata.get("docs"));
    if docs.and_then(|docs| docs.get("rs")).is_none() {
        let message =
            "docs.rs is not told what to build; add [package.metadata.docs.rs], with the features to show";
        findings.push(Finding::error(path, None, message));
    }
    findings.extend(chosen_kubernetes_version(path, manifest));
    findings
}

/// A build has one version of the Kubernetes types, which is for the program to choose: a library names one in a feature
/// that can be turned off, or for its own tests (<https://docs.rs/k8s-openapi/latest/k8s_openapi/#crate-features>).
fn chosen_kubernetes_version(path: &Path, manifest: &Table) -> Option<Finding> {
    let is_version = |feature: &&str| feature.starts_with("v1_") || matches!(*feature, "earliest" | "latest");
    let version = tables_of(manifest, &["dependencies", "build-dependencies"])
        .into_iter()
        .filter_map(|table| table.get("k8s-openapi")?.get("features")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .find(is_version)?;
    let message = format!(
        "k8s-openapi's {version} is chosen for every program; choose it by a feature that is on by default: \
         k8s-{version} = [\"k8s-openapi/{version}\"]"
    );
    Some(Finding::error(path, None, message))
}

/// Every table of dependencies, those for one platform included.
fn dependency_tables(manifest: &Table) -> Vec<&Table> {
    tables_of(manifest, &DEPENDENCIES)
}

/// The tables of these names, those for one platform included.
fn tables_of<'a>(manifest: &'a Table, names: &[&str]) -> Vec<&'a Table> {
    let platforms = manifest
        .get("target")
        .and_then(Value::as_table)
        .into_iter()
        .flat_map(Table::values);
    let sections = platforms
        .filter_map(Value::as_table)
        .chain(std::iter::once(manifest));
    sections
        .flat_map(|section| names.iter().filter_map(|name| section.get(*name)?.as_table()))
        .collect()
}

/// Each entry says why it is there: in a comment behind it, or in one above its block.
fn workspace_dependencies(path: &Path, text: &str, used: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut inside = false;
    let mut block_has_reason = false;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.trim() == "[workspace.dependencies]";
            block_has_reason = false;
        } else if line.trim().is_empty() {
            block_has_reason = false;
        } else if line.starts_with('#') {
            block_has_reason = true;
        } else if inside {
            let name = line.split(['=', '.', ' ']).next().unwrap_or(line);
            if !block_has_reason && !has_comment(line) {
                let message = format!("{name} has no reason; say in a comment behind it what it is for");
                findings.push(Finding::error(path, index + 1, message));
            }
            if !used.contains(name) {
                findings.push(Finding::warning(
                    path,
                    index + 1,
                    format!("no crate of the workspace uses {name}"),
                ));
            }
        }
    }
    findings
}

/// Whether a `#` stands outside of quotes, with words behind it.
fn has_comment(line: &str) -> bool {
    let mut quoted = false;
    for (index, character) in line.char_indices() {
        match character {
            '"' => quoted = !quoted,
            '#' if !quoted => return !line[index + 1..].trim().is_empty(),
            _ => {}
        }
    }
    false
}

fn change_log(text: &str) -> Option<Finding> {
    let found = text
        .lines()
        .any(|line| line.starts_with('#') && line.contains("Unreleased"));
    let message = "there is no section \"Unreleased\"; add it, with what changes for a user";
    (!found).then(|| Finding::error(Path::new("CHANGELOG.md"), None, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(text: &str) -> Vec<String> {
        let path = Path::new("crates/x/Cargo.toml");
        member_manifest(path, &parse(path, text).unwrap())
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_member_takes_lints_and_versions_from_the_workspace() {
        let tidy = "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = { workspace = true, features = [\"x\"] }\n";
        assert_eq!(member(tidy), Vec::<String>::new());
    }

    #[test]
    fn a_member_with_lints_or_versions_of_its_own_is_an_error() {
        let found =
            member("[lints]\nworkspace = false\n[target.'cfg(unix)'.dev-dependencies]\nlibc = \"0.2\"\n");
        assert!(found[0].contains("[lints] workspace = true"), "{found:?}");
        assert!(found[1].contains("libc = { workspace = true }"), "{found:?}");
        assert_eq!(found.len(), 2);
    }

    fn library(text: &str) -> Vec<String> {
        let path = Path::new("crates/x/Cargo.toml");
        library_manifest(path, &parse(path, text).unwrap())
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_library_says_what_it_takes_to_publish_it() {
        let whole = "[package]\ndescription = \"x\"\nlicense.workspace = true\nrepository.workspace = true\n\
                     documentation = \"x\"\nreadme = \"x\"\nkeywords = [\"x\"]\ncategories = [\"x\"]\n\
                     [package.metadata.docs.rs]\nall-features = true\n";
        assert_eq!(library(whole), Vec::<String>::new());
        let without_documentation = library(&whole.replace("documentation = \"x\"\n", ""));
        assert_eq!(without_documentation.len(), 1);
        assert!(without_documentation[0].contains("has no documentation"));
        let six = library(&whole.replace(
            "keywords = [\"x\"]",
            "keywords = [\"a\", \"b\", \"c\", \"d\", \"e\", \"f\"]",
        ));
        assert!(six[0].contains("has 6 keywords"), "{six:?}");
        let long = library(&whole.replace("keywords = [\"x\"]", "keywords = [\"a-word-of-twenty-one-c\"]"));
        assert!(long[0].contains("longer than 20"), "{long:?}");
        let inherited = library(&whole.replace("categories = [\"x\"]", "categories.workspace = true"));
        assert!(inherited[0].contains("has 0 categories"), "{inherited:?}");
        let without_docs = library(whole.split("[package.metadata").next().unwrap_or_default());
        assert!(without_docs[0].contains("docs.rs"), "{without_docs:?}");
    }

    #[test]
    fn a_library_leaves_the_version_of_kubernetes_types_to_the_program() {
        let found = |text: &str| {
            let path = Path::new("crates/x/Cargo.toml");
            chosen_kubernetes_version(path, &parse(path, text).unwrap()).map(|finding| finding.message)
        };
        let chosen = "k8s-openapi = { workspace = true, features = [\"schemars\", \"v1_36\"] }\n";
        for table in [
            "[dependencies]",
            "[build-dependencies]",
            "[target.'cfg(unix)'.dependencies]",
        ] {
            let message = found(&format!("{table}\n{chosen}")).unwrap();
            assert!(
                message.contains("k8s-v1_36 = [\"k8s-openapi/v1_36\"]"),
                "{message}"
            );
        }
        let latest = chosen.replace("v1_36", "latest");
        assert!(found(&format!("[dependencies]\n{latest}")).is_some());

        assert_eq!(found(&format!("[dev-dependencies]\n{chosen}")), None);
        let by_a_feature = "[features]\ndefault = [\"k8s-v1_36\"]\nk8s-v1_36 = [\"k8s-openapi/v1_36\"]\n\
                            [dependencies]\nk8s-openapi = { workspace = true, features = [\"schemars\"] }\n";
        assert_eq!(found(by_a_feature), None);
    }

    #[test]
    fn a_dependency_without_a_reason_is_an_error_at_its_line() {
        let text = "[workspace.dependencies]\n# Our own.\nours = { path = \"x\" }\nmore = { path = \"y\" }\n\n\
                    bytes = \"1\" # frames\nodd = \"#1\"\n[workspace.lints]\nthis = \"is no dependency\"\n";
        let used = ["ours", "more", "odd"].map(str::to_owned).into();
        let found: Vec<String> = workspace_dependencies(Path::new("Cargo.toml"), text, &used)
            .iter()
            .map(Finding::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "warning: Cargo.toml:6: no crate of the workspace uses bytes",
                "error: Cargo.toml:7: odd has no reason; say in a comment behind it what it is for",
            ]
        );
    }

    #[test]
    fn a_library_has_the_workspaces_licence_in_its_folder() {
        let found = |own| {
            licence_file(Path::new("crates/x/Cargo.toml"), own, "may be used").map(|finding| finding.message)
        };
        assert_eq!(found(Some("may be used")), None);
        assert!(found(None).unwrap().contains("no LICENSE"));
        assert!(
            found(Some("may not"))
                .unwrap()
                .contains("not that of the workspace")
        );
    }

    #[test]
    fn a_change_log_has_a_section_for_what_is_not_released() {
        assert_eq!(change_log("# Changes\n\n## Unreleased\n"), None);
        assert!(change_log("# Changes\n\nUnreleased things come later.\n").is_some());
        assert!(change_log("").is_some());
    }
}
