//! The layers: which crate of the workspace may depend on which, and what may not be below a crate at all.
//!
//! Dev-dependencies are exempt: a test may look at a crate from above.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Finding, TidyError};
use crate::files;
use crate::process;
use crate::workspace::{self, WorkspaceError};

/// What a package may depend on within the workspace.
enum Below {
    /// These, and what is below them.
    Named(&'static [&'static str]),
    /// Every library.
    Everything,
}

/// The crate table of ARCHITECTURE.md: each package and its own edges.
const LAYERS: &[(&str, Below)] = &[
    ("krm-stream-protocol", Below::Named(&[])),
    ("krm-stream-projection", Below::Named(&["krm-stream-protocol"])),
    (
        "krm-stream-shared",
        Below::Named(&["krm-stream-protocol", "krm-stream-projection"]),
    ),
    ("krm-stream-upstream-kube", Below::Named(&["krm-stream-protocol"])),
    ("krm-stream-http", Below::Named(&["krm-stream-shared"])),
    ("krm-stream-status", Below::Named(&["krm-stream-protocol"])),
    ("krm-stream-metrics", Below::Named(&["krm-stream-protocol"])),
    (
        "krm-stream-declared",
        Below::Named(&["krm-stream-status", "krm-stream-shared"]),
    ),
    ("krm-stream-simulator", Below::Named(&[])),
    ("krm-stream-demo", Below::Everything),
    ("krm-stream-tests", Below::Everything),
    // Its bench runs the simulator, and decodes and projects in its own process.
    (
        "xtask",
        Below::Named(&[
            "krm-stream-projection",
            "krm-stream-simulator",
            "krm-stream-upstream-kube",
        ]),
    ),
];

/// Packages whose whole dependency tree is free of a runtime: they decide, and others do.
const WITHOUT_RUNTIME: &[&str] = &[
    "krm-stream-protocol",
    "krm-stream-projection",
    "krm-stream-status",
];

/// The libraries that may name kube.
const WITH_KUBE: &[&str] = &["krm-stream-upstream-kube", "krm-stream-declared"];

/// The workspace's packages, and the resolved graph of everything below them.
#[derive(Debug)]
pub(super) struct Graph {
    packages: Vec<Member>,
    /// Every package of the graph by its id.
    names: BTreeMap<String, String>,
    /// Normal dependencies by id.
    normal: BTreeMap<String, Vec<String>>,
}

/// A package of the workspace.
#[derive(Debug)]
pub(super) struct Member {
    id: String,
    pub(super) name: String,
    /// Relative to the workspace.
    pub(super) manifest: PathBuf,
    pub(super) manifest_text: String,
    /// The packages that it names as normal or build dependencies.
    dependencies: BTreeSet<String>,
}

impl Member {
    /// Whether other projects are to depend on it.
    pub(super) fn is_library(&self) -> bool {
        self.manifest.starts_with("crates")
    }
}

impl Graph {
    /// Asks cargo, without network where that suffices.
    pub(super) fn read(root: &Path) -> Result<Self, TidyError> {
        let metadata = metadata()?;
        let mut graph = Self::parse(&metadata, root)?;
        for member in &mut graph.packages {
            member.manifest_text = files::read(&root.join(&member.manifest))?;
        }
        Ok(graph)
    }

    /// The packages of the workspace.
    pub(super) fn members(&self) -> Vec<&Member> {
        self.packages.iter().collect()
    }

    fn parse(metadata: &Value, root: &Path) -> Result<Self, WorkspaceError> {
        let text = |value: &Value, key: &str| {
            let found = value[key].as_str().map(str::to_owned);
            found.ok_or_else(|| WorkspaceError::Unreadable(format!("no {key} in {value:.200}")))
        };
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let own: BTreeSet<String> = list(&metadata["workspace_members"])
            .iter()
            .filter_map(|id| id.as_str().map(str::to_owned))
            .collect();

        let mut packages = Vec::new();
        let mut names = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let (id, name) = (text(&package, "id")?, text(&package, "name")?);
            names.insert(id.clone(), name.clone());
            if !own.contains(&id) {
                continue;
            }
            let manifest = PathBuf::from(text(&package, "manifest_path")?);
            let dependencies = list(&package["dependencies"]);
            // A normal dependency has the kind null.
            let not_for_tests = dependencies
                .iter()
                .filter(|dependency| dependency["kind"] != "dev");
            packages.push(Member {
                id,
                name,
                manifest: manifest
                    .strip_prefix(root)
                    .map(Path::to_owned)
                    .unwrap_or(manifest),
                manifest_text: String::new(),
                dependencies: not_for_tests
                    .map(|dependency| text(dependency, "name"))
                    .collect::<Result<_, _>>()?,
            });
        }

        let mut normal = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let below = list(&node["deps"]).into_iter().filter(|dependency| {
                list(&dependency["dep_kinds"])
                    .iter()
                    .any(|kind| kind["kind"].is_null())
            });
            let below = below
                .map(|dependency| text(&dependency, "pkg"))
                .collect::<Result<Vec<_>, _>>()?;
            normal.insert(text(&node, "id")?, below);
        }
        Ok(Self {
            packages,
            names,
            normal,
        })
    }

    /// The shortest way down from a package to one whose name is banned, as names.
    fn way_to<'a>(&'a self, from: &'a Member, banned: impl Fn(&str) -> bool) -> Option<Vec<&'a str>> {
        let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
        let mut queue = VecDeque::from([from.id.as_str()]);
        while let Some(id) = queue.pop_front() {
            for below in self.normal.get(id).into_iter().flatten() {
                if below == &from.id || came_from.contains_key(below.as_str()) {
                    continue;
                }
                came_from.insert(below, id);
                if self.names.get(below).is_some_and(|name| banned(name)) {
                    return Some(self.way(below, &came_from));
                }
                queue.push_back(below);
            }
        }
        None
    }

    fn way<'a>(&'a self, to: &'a str, came_from: &BTreeMap<&'a str, &'a str>) -> Vec<&'a str> {
        let ids = std::iter::successors(Some(to), |id| came_from.get(id).copied());
        let mut names: Vec<&str> = ids
            .map(|id| self.names.get(id).map_or(id, String::as_str))
            .collect();
        names.reverse();
        names
    }
}

/// Every edge and every ban.
pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    let mut findings = own_edges(graph);
    for member in &graph.packages {
        if WITHOUT_RUNTIME.contains(&member.name.as_str()) {
            findings.extend(ban(
                graph,
                member,
                "it reads no clock and spawns nothing, so it takes time as an argument",
                |name| name == "tokio",
            ));
        }
        if member.is_library() && !WITH_KUBE.contains(&member.name.as_str()) {
            let reason = "of the libraries, only krm-stream-upstream-kube and krm-stream-declared name kube";
            findings.extend(ban(graph, member, reason, |name| {
                name == "kube" || name.starts_with("kube-")
            }));
        }
    }
    findings
}

fn ban(graph: &Graph, member: &Member, reason: &str, banned: impl Fn(&str) -> bool) -> Option<Finding> {
    let way = graph.way_to(member, banned)?;
    let (line, text) = manifest_line(member, way.get(1).copied().unwrap_or_default());
    let message = format!(
        "{} is below {}: {reason}; the way is {}{text}",
        way.last()?,
        member.name,
        way.join(" → ")
    );
    Some(Finding::error(&member.manifest, line, message))
}

fn own_edges(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    let own: BTreeSet<&str> = graph.packages.iter().map(|member| member.name.as_str()).collect();
    for member in &graph.packages {
        let Some(allowed) = allowed(&member.name) else {
            let message = format!(
                "{} has no place in the table of layers; give it one in xtask/src/tidy/edges.rs",
                member.name
            );
            findings.push(Finding::error(&member.manifest, None, message));
            continue;
        };
        for dependency in &member.dependencies {
            if !own.contains(dependency.as_str()) || allowed.contains(dependency.as_str()) {
                continue;
            }
            let (line, text) = manifest_line(member, dependency);
            let list = allowed.iter().copied().collect::<Vec<_>>().join(", ");
            let list = if list.is_empty() {
                "no crate of the workspace".to_owned()
            } else {
                list
            };
            let message = format!(
                "{} may not depend on {dependency}, only on {list}{text}",
                member.name
            );
            findings.push(Finding::error(&member.manifest, line, message));
        }
    }
    findings
}

/// What a package may name: its own edges, and what these have below them.
fn allowed(package: &str) -> Option<BTreeSet<&'static str>> {
    match LAYERS.iter().find(|(name, _)| *name == package)? {
        (_, Below::Everything) => Some(
            LAYERS
                .iter()
                .filter(|(_, below)| matches!(below, Below::Named(_)))
                .map(|(name, _)| *name)
                .collect(),
        ),
        (_, Below::Named(edges)) => {
            let mut closure: BTreeSet<&str> = edges.iter().copied().collect();
            for edge in *edges {
                closure.extend(allowed(edge).into_iter().flatten());
            }
            Some(closure)
        }
    }
}

/// The line that names a dependency, outside of the sections for tests, and its text for a message.
fn manifest_line(member: &Member, dependency: &str) -> (Option<usize>, String) {
    let mut in_tests = false;
    for (index, line) in member.manifest_text.lines().enumerate() {
        if line.starts_with('[') {
            in_tests = line.contains("dev-dependencies");
        }
        let rest = line.strip_prefix(dependency).unwrap_or_default();
        if !in_tests && rest.trim_start().starts_with(['=', '.']) {
            return (Some(index + 1), format!("; the line is `{line}`"));
        }
    }
    (None, String::new())
}

/// `cargo metadata` with every feature, for this machine's platform.
///
/// Without network first: what was downloaded to build the tests suffices mostly. An optional dependency that
/// nobody turned on may not be there; then the network is asked, and where there is none, what is turned on
/// by default is looked at.
fn metadata() -> Result<Value, WorkspaceError> {
    let host = host().map_err(|source| WorkspaceError::Metadata { source })?;
    let platform = ["--filter-platform", &host];
    let offline = workspace::metadata(&[&platform[..], &["--offline", "--all-features"]].concat());
    let Err(first) = offline else { return offline };
    workspace::metadata(&[&platform[..], &["--all-features"]].concat())
        .or_else(|_| workspace::metadata(&[&platform[..], &["--offline"]].concat()))
        .map_err(|_| first)
}

/// The target triple of this machine, as rustc calls it.
fn host() -> Result<String, process::ProcessError> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = process::output(std::process::Command::new(rustc).arg("-vV"))?;
    let line = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A graph of packages, given as name, normal dependencies and dev-dependencies.
    fn graph(packages: &[(&str, &[&str], &[&str])]) -> Graph {
        let folder = |name: &str| name.trim_start_matches("krm-stream-").to_owned();
        let own: Vec<&str> = packages
            .iter()
            .map(|package| package.0)
            .filter(|name| name.contains("krm"))
            .collect();
        let kinds = |kind: Value| move |name: &&str| json!({"name": name, "kind": kind.clone()});
        let metadata = json!({
            "workspace_members": own,
            "packages": packages.iter().map(|(name, normal, dev)| json!({
                "id": name,
                "name": name,
                "manifest_path": format!("/root/crates/{}/Cargo.toml", folder(name)),
                "dependencies": normal.iter().map(kinds(Value::Null)).chain(dev.iter().map(kinds("dev".into())))
                    .collect::<Vec<_>>(),
            })).collect::<Vec<_>>(),
            "resolve": {"nodes": packages.iter().map(|(name, normal, dev)| json!({
                "id": name,
                "deps": normal.iter().map(|to| json!({"pkg": to, "dep_kinds": [{"kind": null}]}))
                    .chain(dev.iter().map(|to| json!({"pkg": to, "dep_kinds": [{"kind": "dev"}]})))
                    .collect::<Vec<_>>(),
            })).collect::<Vec<_>>()},
        });
        let mut graph = Graph::parse(&metadata, Path::new("/root")).unwrap();
        for (member, (_, normal, dev)) in graph
            .packages
            .iter_mut()
            .zip(packages.iter().filter(|package| package.0.contains("krm")))
        {
            member.manifest_text = "[package]\n[dependencies]\n".to_owned();
            for name in *normal {
                member.manifest_text.push_str(&line(name));
            }
            member.manifest_text.push_str("[dev-dependencies]\n");
            for name in *dev {
                member.manifest_text.push_str(&line(name));
            }
        }
        graph
    }

    fn line(dependency: &str) -> String {
        format!("{dependency} = {{ workspace = true }}\n")
    }

    fn messages(graph: &Graph) -> Vec<String> {
        check(graph).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn edges_that_the_table_names_and_those_below_them_are_allowed() {
        let graph = graph(&[
            ("krm-stream-protocol", &[], &[]),
            ("krm-stream-projection", &["krm-stream-protocol"], &[]),
            (
                "krm-stream-shared",
                &["krm-stream-protocol", "krm-stream-projection", "tokio"],
                &[],
            ),
            (
                "krm-stream-http",
                &[
                    "krm-stream-shared",
                    "krm-stream-protocol",
                    "krm-stream-projection",
                ],
                &[],
            ),
            ("tokio", &[], &[]),
        ]);
        assert_eq!(messages(&graph), Vec::<String>::new());
    }

    #[test]
    fn an_edge_upwards_is_an_error_at_its_line() {
        let graph = graph(&[
            ("krm-stream-shared", &[], &[]),
            (
                "krm-stream-projection",
                &["krm-stream-shared"],
                &["krm-stream-shared"],
            ),
        ]);
        assert_eq!(
            messages(&graph),
            [
                "error: crates/projection/Cargo.toml:3: krm-stream-projection may not depend on krm-stream-shared, only on \
              krm-stream-protocol; the line is `krm-stream-shared = { workspace = true }`"
            ]
        );
    }

    #[test]
    fn the_simulator_has_no_gateway_crate_below_it() {
        let graph = graph(&[
            ("krm-stream-protocol", &[], &[]),
            ("krm-stream-simulator", &["krm-stream-protocol"], &[]),
        ]);
        let [message] = &messages(&graph)[..] else {
            panic!("{:?}", messages(&graph))
        };
        assert!(message.contains("only on no crate of the workspace"), "{message}");
    }

    #[test]
    fn tests_of_a_crate_may_look_at_it_from_above() {
        let graph = graph(&[
            (
                "krm-stream-protocol",
                &[],
                &["krm-stream-simulator", "tokio", "kube"],
            ),
            ("krm-stream-simulator", &[], &["krm-stream-protocol"]),
            ("tokio", &[], &[]),
            ("kube", &[], &[]),
        ]);
        assert_eq!(messages(&graph), Vec::<String>::new());
    }

    #[test]
    fn a_runtime_deep_below_a_pure_crate_is_found_with_the_way_to_it() {
        let graph = graph(&[
            ("krm-stream-protocol", &["futures", "serde"], &[]),
            ("futures", &["io"], &[]),
            ("serde", &[], &[]),
            ("io", &["tokio", "futures"], &[]),
            ("tokio", &[], &[]),
        ]);
        let [message] = &messages(&graph)[..] else {
            panic!("{:?}", messages(&graph))
        };
        assert!(
            message.starts_with("error: crates/protocol/Cargo.toml:3: tokio is below"),
            "{message}"
        );
        assert!(
            message.contains("krm-stream-protocol → futures → io → tokio"),
            "{message}"
        );
        assert!(
            message.ends_with("the line is `futures = { workspace = true }`"),
            "{message}"
        );
    }

    #[test]
    fn kube_is_found_below_any_library_but_the_two() {
        let packages: [(&str, &[&str], &[&str]); 4] = [
            ("krm-stream-shared", &["kube-client"], &[]),
            ("krm-stream-upstream-kube", &["kube-client"], &[]),
            ("krm-stream-declared", &["kube-client"], &[]),
            ("kube-client", &[], &[]),
        ];
        let graph = graph(&packages);
        let [message] = &messages(&graph)[..] else {
            panic!("{:?}", messages(&graph))
        };
        assert!(
            message.contains("kube-client is below krm-stream-shared"),
            "{message}"
        );
    }

    #[test]
    fn a_package_without_a_layer_is_an_error() {
        let graph = graph(&[("krm-stream-surprise", &[], &[])]);
        assert!(
            messages(&graph)[0].contains("no place in the table of layers"),
            "{:?}",
            messages(&graph)
        );
    }
}
