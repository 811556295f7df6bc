//! The table of `tests/README.md`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Adds the names of all functions below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let starts = text.split("fn ").skip(1);
            names.extend(starts.filter_map(|start| start.split('(').next().map(str::to_owned)));
        }
    }
}

#[test]
fn the_table_names_tests_that_exist() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = tests.parent().unwrap();
    let mut names = BTreeSet::new();
    for folder in ["crates", "tests", "demo/src", "demo/tests"] {
        functions(&root.join(folder), &mut names);
    }
    let table = fs::read_to_string(tests.join("README.md")).unwrap();
    let rows: Vec<_> = table.lines().filter(|line| line.starts_with("| ")).collect();
    let cited: Vec<_> = rows
        .iter()
        .flat_map(|row| row.split('`').skip(1).step_by(2))
        .filter(|name| name.matches('_').count() > 1 && !name.contains('/'))
        .collect();
    assert!(cited.len() > 80, "{}", cited.len());
    let unknown: Vec<_> = cited.iter().filter(|name| !names.contains(**name)).collect();
    assert!(unknown.is_empty(), "no such test: {unknown:?}");
}
