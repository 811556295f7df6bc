//! Reading what is under `deploy/`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// A path within the checkout.
pub(crate) fn path(relative: &str) -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(relative)
}

pub(crate) fn text(relative: &str) -> String {
    let path = path(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The YAML documents of a file.
pub(crate) fn documents(relative: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(&text(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

/// The one document of a file.
pub(crate) fn document(relative: &str) -> Value {
    let mut documents = documents(relative);
    assert_eq!(documents.len(), 1, "{relative}");
    documents.remove(0)
}

/// All files under a folder that end so, as paths within the checkout.
pub(crate) fn under(folder: &str, ending: &str) -> Vec<String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(path(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    for entry in entries {
        let entry = entry.expect("the folder can be read");
        let name = format!("{folder}/{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            found.extend(under(&name, ending));
        } else if name.ends_with(ending) {
            found.push(name);
        }
    }
    found.sort();
    found
}

/// The settings of a file of `NAME=value` lines.
pub(crate) fn settings(relative: &str) -> BTreeMap<String, String> {
    let text = text(relative);
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, value) = line
                .split_once('=')
                .unwrap_or_else(|| panic!("{relative}: {line}"));
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// The strings of a list.
pub(crate) fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().cloned().unwrap_or_default();
    list.iter()
        .map(|value| value.as_str().expect("the list holds strings").to_owned())
        .collect()
}
