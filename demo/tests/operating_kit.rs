//! The manifests under `deploy/` start this program: with flags and variables that it has.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on says why and fails"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_krm-stream-demo");

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files under a folder that end so.
fn under(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    paths
        .flat_map(|path| {
            if path.is_dir() {
                under(&path, ending)
            } else if path.to_string_lossy().ends_with(ending) {
                vec![path]
            } else {
                Vec::new()
            }
        })
        .collect()
}

fn help() -> String {
    let output = Command::new(PROGRAM)
        .arg("--help")
        .output()
        .expect("the program starts");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("the help is text")
}

/// The long flags of a text.
fn flags(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
    words
        .filter(|word| {
            word.strip_prefix("--")
                .is_some_and(|name| name.starts_with(|c: char| c.is_ascii_lowercase()))
        })
        .map(str::to_owned)
        .collect()
}

/// The values of the list `args` of the container, and of what patches add to it.
fn arguments(manifests: &str) -> Vec<String> {
    let lines = manifests.lines().map(str::trim);
    lines
        .filter_map(|line| {
            line.strip_prefix("- --")
                .or_else(|| line.strip_prefix("value: --"))
        })
        .map(|argument| format!("--{argument}"))
        .collect()
}

/// How many flags the manifests of a folder use, all of which the program must have.
fn count_flags(folder: &str) -> usize {
    let known = flags(&help());
    let mut used = 0;
    for manifest in under(&checkout().join("deploy/kustomize").join(folder), ".yaml") {
        for argument in arguments(&text(&manifest)) {
            let name = argument.split('=').next().unwrap_or_default();
            assert!(
                known.contains(name),
                "{}: the program has no {name}",
                manifest.display()
            );
            used += 1;
        }
    }
    used
}

#[test]
fn every_flag_of_the_deployment_is_one_of_the_program() {
    assert_eq!(count_flags("base"), 9);
    assert_eq!(count_flags("overlays"), 0, "overlays set variables");
}

#[test]
fn every_flag_of_the_component_for_tls_is_one_of_the_program() {
    assert_eq!(count_flags("components/tls"), 2);
}

#[test]
fn every_variable_of_the_settings_is_one_of_the_program() {
    let help = help();
    let mut used = 0;
    for settings in under(&checkout().join("deploy/kustomize"), ".env") {
        for line in text(&settings).lines().filter(|line| line.starts_with("KRM_")) {
            let (name, _) = line.split_once('=').expect("a setting has a value");
            assert!(
                help.contains(&format!("[env: {name}=")),
                "{}: the program has no {name}",
                settings.display()
            );
            used += 1;
        }
    }
    assert!(used >= 8, "only {used} variables were found");
}

#[test]
fn the_documentation_names_flags_that_there_are_and_leaves_none_out() {
    let known = flags(&help());
    let running = flags(&text(&checkout().join("docs/running.md")));
    let operating = text(&checkout().join("docs/operating.md"));
    let controls: String = operating
        .lines()
        .filter(|line| line.starts_with("| `--"))
        .collect();
    for flag in flags(&controls) {
        assert!(
            known.contains(&flag),
            "docs/operating.md: the program has no {flag}"
        );
    }
    for flag in &known {
        let told = running.contains(flag) || operating.contains(flag.as_str());
        let of_every_program = flag == "--help" || flag == "--version";
        assert!(told || of_every_program, "no page tells of {flag}");
    }
}

/// Starts the program with the arguments and variables of an overlay, on free ports of this machine and a cluster that is not
/// there: whatever the flags break among themselves is told before that.
fn start(overlay: &str, components: &[&str]) -> Output {
    let kustomize = checkout().join("deploy/kustomize");
    let deployment = text(&kustomize.join("base/deployment.yaml"));
    let mut settings = text(&kustomize.join("base/settings.env"));
    settings.push_str(&text(&kustomize.join(format!("overlays/{overlay}/settings.env"))));
    let mut command = Command::new(PROGRAM);
    command.env_clear();
    for line in settings
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let (name, value) = line.split_once('=').expect("a setting has a value");
        command.env(name, value);
    }
    let added = components
        .iter()
        .map(|component| text(&kustomize.join(format!("components/{component}/arguments.yaml"))));
    for argument in arguments(&deployment)
        .into_iter()
        .chain(added.flat_map(|patch| arguments(&patch)))
    {
        command.arg(
            argument
                .replace("$(POD_NAMESPACE)", "krm-stream")
                .replace("$(SITE_HOST)", "krm-stream.example.com")
                .replace("$(POD_IP)", "192.0.2.7")
                .replace("0.0.0.0:8080", "0.0.0.0:0")
                .replace("0.0.0.0:9090", "0.0.0.0:0"),
        );
    }
    command.output().expect("the program starts")
}

#[test]
fn the_overlays_ask_for_what_can_be_asked_for_together() {
    for overlay in ["shared", "per-caller"] {
        for components in [&[][..], &["declared-streams"]] {
            let output = start(overlay, components);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // Not in a pod: that is all that is wrong.
            assert_eq!(output.status.code(), Some(1), "{overlay}: {said}");
            assert!(said.contains("--in-cluster"), "{overlay}: {said}");
        }
    }
}

#[test]
fn every_flag_of_the_component_for_declared_streams_is_one_of_the_program() {
    assert_eq!(count_flags("components/declared-streams"), 3);
}
