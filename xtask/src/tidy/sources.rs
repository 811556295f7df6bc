//! The form of files, and words that do not belong into them.

use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::{Finding, TidyError};
use crate::files;
use crate::process;

/// A file that is longer, tests aside, has more than one subject.
const LONG: usize = 400;
const TOO_LONG: usize = 600;

/// Macros that stand for work not done.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Text that ties the project to the machine that it was written on, or to one mirror of a registry. In two
/// parts each, so that this file may be checked too.
const FOREIGN: [(&str, &str); 8] = [
    ("/wo", "rk/"),
    (".libr", "ary/"),
    ("/tmp/te", "am"),
    ("index.crates", ".io"),
    ("proxy.golang", ".org"),
    ("files.pythonhosted", ".org"),
    ("registry.npmjs", ".org"),
    ("deb.debian", ".org"),
];

/// Endings of files whose lines are written by people.
const WRITTEN: [&str; 10] = ["rs", "toml", "md", "html", "css", "js", "go", "sh", "yml", "yaml"];

/// The files of the project, relative to `root`: those that git knows or would add, and without git, all
/// that do not look like output.
pub(super) fn list(root: &Path) -> Result<Vec<PathBuf>, TidyError> {
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root);
    if let Ok(names) = process::output(&mut git) {
        let names = names
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(PathBuf::from);
        // What was deleted and not yet committed is still in git's list.
        return Ok(names.filter(|name| root.join(name).is_file()).collect());
    }
    let mut found = Vec::new();
    walk(root, Path::new(""), &mut found)?;
    Ok(found)
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), TidyError> {
    let full = root.join(folder);
    for entry in std::fs::read_dir(&full).map_err(files::naming("list", &full))? {
        let name = entry.map_err(files::naming("list", &full))?.file_name();
        let path = folder.join(&name);
        if root.join(&path).is_file() {
            found.push(path);
        } else if name != "target" && name != ".git" {
            walk(root, &path, found)?;
        }
    }
    Ok(())
}

/// Every rule for one file.
pub(super) fn check(path: &Path, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if path.file_name().is_some_and(|name| name == "Cargo.lock") {
        return findings;
    }
    foreign_words(path, text, &mut findings);
    let ending = path.extension().and_then(|ending| ending.to_str());
    if ending.is_some_and(|ending| WRITTEN.contains(&ending)) || path == Path::new(".ci/run") {
        trailing_whitespace(path, text, &mut findings);
    }
    if ending == Some("rs") {
        rust(path, text, &mut findings);
    }
    findings
}

fn foreign_words(path: &Path, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.lines().enumerate() {
        for (head, tail) in FOREIGN {
            let word = format!("{head}{tail}");
            if line.contains(&word) {
                findings.push(Finding::error(
                    path,
                    index + 1,
                    format!("{word} means nothing to a reader elsewhere"),
                ));
            }
        }
    }
}

fn trailing_whitespace(path: &Path, text: &str, findings: &mut Vec<Finding>) {
    for (index, line) in text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::error(
                path,
                index + 1,
                "whitespace at the end of the line",
            ));
        }
    }
}

fn rust(path: &Path, text: &str, findings: &mut Vec<Finding>) {
    if !text.starts_with("//!") {
        let message =
            "the first line is no module doc; begin with //! and one sentence on what the file holds";
        findings.push(Finding::error(path, 1, message));
    }
    if path.file_name().is_some_and(|name| name == "mod.rs") {
        let message = "a module is named by its file: foo.rs beside the folder foo, not foo/mod.rs";
        findings.push(Finding::error(path, None, message));
    }
    for (index, line) in text.lines().enumerate() {
        if line.contains('\t') {
            findings.push(Finding::error(
                path,
                index + 1,
                "a tab; indent with spaces, write \\t in a string",
            ));
        }
        if let Some(name) = unfinished(line) {
            findings.push(Finding::error(
                path,
                index + 1,
                format!("{name}! is not for a commit"),
            ));
        }
    }
    if !is_test(path) {
        length(path, code_lines(text), findings);
    }
}

fn length(path: &Path, lines: usize, findings: &mut Vec<Finding>) {
    let message = format!("{lines} lines without tests; split it by subject, foo.rs and foo/ beside it");
    if lines > TOO_LONG {
        findings.push(Finding::error(path, None, message));
    } else if lines > LONG {
        findings.push(Finding::warning(path, None, message));
    }
}

/// The macro that a line of code calls, if it is one of [`UNFINISHED`].
fn unfinished(line: &str) -> Option<&'static str> {
    if line.trim_start().starts_with("//") {
        return None;
    }
    let called = |name: &&str| {
        let call = format!("{name}!");
        line.match_indices(&call).any(|(at, _)| {
            let part_of_a_name = |c: char| c.is_alphanumeric() || c == '_';
            !line[..at].ends_with(part_of_a_name) && line[at + call.len()..].starts_with(['(', '{', '['])
        })
    };
    UNFINISHED.into_iter().find(called)
}

fn is_test(path: &Path) -> bool {
    let in_folder = |name: &str| {
        path.components()
            .any(|part| part == Component::Normal(name.as_ref()))
    };
    in_folder("tests") || in_folder("benches") || path.file_name().is_some_and(|name| name == "tests.rs")
}

/// How many lines come before the module of tests at the end of the file.
fn code_lines(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let is_tests = |index: usize| {
        let mut after = lines[index + 1..].iter().skip_while(|line| line.starts_with('#'));
        after
            .next()
            .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    (0..lines.len())
        .find(|index| lines[*index] == "#[cfg(test)]" && is_tests(*index))
        .unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> Vec<String> {
        check(Path::new(path), text)
            .iter()
            .map(Finding::to_string)
            .collect()
    }

    #[test]
    fn a_tidy_file_has_no_finding() {
        assert_eq!(
            found("crates/x/src/lib.rs", "//! What it holds.\n\nfn main() {}\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn every_rust_file_begins_with_its_module_doc() {
        for path in [
            "crates/x/src/a.rs",
            "crates/x/tests/a.rs",
            "crates/x/benches/a.rs",
            "tests/src/lib.rs",
        ] {
            let found = found(path, "use std::fmt;\n");
            assert!(
                found[0].starts_with(&format!("error: {path}:1: the first line is no module doc")),
                "{found:?}"
            );
        }
    }

    #[test]
    fn length_counts_neither_the_tests_at_the_end_nor_files_of_tests() {
        let long = |lines: usize| format!("//! Doc.\n{}", "fn f() {}\n".repeat(lines - 1));
        let with_tests = format!(
            "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
            long(399),
            "\n".repeat(500)
        );
        assert_eq!(found("src/a.rs", &with_tests), Vec::<String>::new());
        assert_eq!(found("crates/x/tests/a.rs", &long(5000)), Vec::<String>::new());
        assert_eq!(
            found("crates/x/src/a/tests.rs", &long(5000)),
            Vec::<String>::new()
        );
        assert!(found("src/a.rs", &long(401))[0].starts_with("warning: src/a.rs: 401 lines"));
        assert!(found("src/a.rs", &long(601))[0].starts_with("error: src/a.rs: 601 lines"));
        let tests_elsewhere = format!(
            "{}#[cfg(test)]\nmod tests;\n{}",
            long(300),
            "fn g() {}\n".repeat(400)
        );
        assert!(found("src/a.rs", &tests_elsewhere)[0].starts_with("error: src/a.rs: 702 lines"));
    }

    #[test]
    fn whitespace_at_the_end_of_a_line_is_an_error_where_people_write() {
        assert_eq!(
            found("README.md", "a \nb\n"),
            ["error: README.md:1: whitespace at the end of the line"]
        );
        assert_eq!(found("README.md", "a\r\nb\n").len(), 1);
        assert_eq!(found(".ci/run", "x\t\n").len(), 1);
        assert_eq!(
            found("tests/fixtures/answer.http", "HTTP/1.1 200 OK\r\n"),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_tab_in_rust_is_an_error_and_in_go_is_not() {
        assert_eq!(found("src/a.rs", "//! Doc.\n\tfn f() {}\n").len(), 1);
        assert_eq!(found("go/a.go", "package main\n\tx\n"), Vec::<String>::new());
    }

    #[test]
    fn a_module_is_named_by_its_file() {
        assert!(found("src/a/mod.rs", "//! Doc.\n")[0].contains("foo.rs beside the folder foo"));
    }

    #[test]
    fn unfinished_work_is_found_in_code_only() {
        for name in UNFINISHED {
            let call = format!("//! Doc.\nfn f() {{ {name}!(\"later\") }}\n");
            assert_eq!(
                found("src/a.rs", &call),
                [format!("error: src/a.rs:2: {name}! is not for a commit")]
            );
            let comment = format!("//! Doc.\n// {name}!() is not allowed.\nfn f() {{ my_{name}!(); }}\n");
            assert_eq!(found("src/a.rs", &comment), Vec::<String>::new());
        }
    }

    #[test]
    fn foreign_words_are_found_in_any_text_but_the_lock_file() {
        for (head, tail) in FOREIGN {
            let text = format!("line\nsee {head}{tail} there\n");
            for path in ["docs/a.md", ".ci/run", "Makefile"] {
                assert!(found(path, &text)[0].starts_with(&format!("error: {path}:2: {head}{tail}")));
            }
            assert_eq!(found("Cargo.lock", &text), Vec::<String>::new());
        }
    }

    #[test]
    fn without_git_all_files_but_output_are_listed() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["src/lib.rs", "target/debug/a.rs", "Cargo.toml"] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut found = Vec::new();
        walk(folder.path(), Path::new(""), &mut found).unwrap();
        found.sort();
        assert_eq!(found, [Path::new("Cargo.toml"), Path::new("src/lib.rs")]);
    }
}
