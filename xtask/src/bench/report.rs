//! The report: a table to read, a file to compare with, and what changed since an older one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use super::figures::{Figure, number};
use super::{BenchError, machine};
use crate::files;

/// The form of the file; another number cannot be compared with.
const VERSION: u64 = 1;

/// A table in Markdown.
pub(crate) fn table(figures: &[Figure]) -> String {
    let mut text =
        "| scenario | figure | gateway | limit | ratio | bar | |\n|---|---|---:|---:|---:|---|---|\n"
            .to_owned();
    for figure in figures {
        let shown = |value: Option<f64>| value.map_or_else(String::new, number);
        let reached = match figure.is_reached() {
            None => "",
            Some(true) => "reached",
            Some(false) => "missed",
        };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {}, {} | {} | {} | {} | {} | {reached} |",
            figure.scenario,
            figure.name,
            figure.unit,
            shown(figure.gateway_value()),
            shown(figure.limit_value()),
            figure
                .ratio()
                .map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            figure.bar_text(),
        );
    }
    text
}

/// What a smoke run has to complain of: figures that did not come out, or are not what they have to be on any machine;
/// and those of one name, which could not be told apart in a comparison.
pub(crate) fn faults(figures: &[Figure]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let doubles = figures
        .iter()
        .filter(|figure| !seen.insert((figure.scenario, figure.name.as_str())));
    let doubles = doubles.map(|figure| format!("{}: {}: more than once", figure.scenario, figure.name));
    let doubles: Vec<String> = doubles.collect();
    figures.iter().filter_map(Figure::fault).chain(doubles).collect()
}

/// Everything, for later comparison.
pub(crate) fn json(figures: &[Figure], machine: &Value, settings: &Value) -> Value {
    json!({
        "version": VERSION,
        "machine": machine,
        "settings": settings,
        "figures": figures.iter().map(Figure::json).collect::<Vec<_>>(),
    })
}

/// Writes the file, and the folders that it needs.
pub(crate) fn write(path: &Path, report: &Value) -> Result<(), BenchError> {
    if let Some(folder) = path.parent() {
        files::create_folder(folder)?;
    }
    files::replace(path, &format!("{report:#}\n"))?;
    Ok(())
}

/// What changed since an older report: figures of both, by scenario and name.
pub(crate) fn compare(old_path: &Path, new: &Value) -> Result<String, BenchError> {
    let unreadable = |why: String| BenchError::Unreadable {
        path: old_path.to_owned(),
        why,
    };
    let old: Value =
        serde_json::from_str(&files::read(old_path)?).map_err(|error| unreadable(error.to_string()))?;
    if old["version"] != VERSION {
        return Err(unreadable(format!("it is not of version {VERSION}")));
    }
    let mut text = format!("then: {}\n\n", machine::line(&old["machine"]));
    text.push_str("| scenario | figure | gateway then | now | change | ratio then | now |\n|---|---|---:|---:|---:|---:|---:|\n");
    let list = |report: &Value| report["figures"].as_array().cloned().unwrap_or_default();
    let (before, after) = (list(&old), list(new));
    let is_same =
        |one: &Value, other: &Value| one["scenario"] == other["scenario"] && one["name"] == other["name"];
    let absent = Value::Null;
    for now in &after {
        let then = before.iter().find(|then| is_same(then, now));
        compare_figure(&mut text, then.unwrap_or(&absent), now);
    }
    // What is no longer measured, of the scenarios that were run.
    for then in &before {
        let was_run = after.iter().any(|now| now["scenario"] == then["scenario"]);
        if was_run && !after.iter().any(|now| is_same(then, now)) {
            compare_figure(&mut text, then, &absent);
        }
    }
    Ok(text)
}

/// One line; `null` stands for a figure that is in one of the two reports only.
fn compare_figure(text: &mut String, then: &Value, now: &Value) {
    let shown = |value: &Value| match value {
        // A value that never came.
        Value::String(word) => word.clone(),
        other => other.as_f64().map_or_else(String::new, number),
    };
    let change = match (then["gateway"].as_f64(), now["gateway"].as_f64()) {
        (Some(then), Some(now)) if then != 0.0 => format!("{:+.0} %", (now / then - 1.0) * 100.0),
        (Some(_) | None, Some(_) | None) if then.is_null() => "new".to_owned(),
        (Some(_) | None, Some(_) | None) if now.is_null() => "gone".to_owned(),
        (Some(_) | None, Some(_) | None) => String::new(),
    };
    let named = if now.is_null() { then } else { now };
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    // Writing to a string does not fail.
    let _ = writeln!(
        text,
        "| {} | {}, {} | {} | {} | {change} | {} | {} |",
        word(&named["scenario"]),
        word(&named["name"]),
        word(&named["unit"]),
        shown(&then["gateway"]),
        shown(&now["gateway"]),
        shown(&then["ratio"]),
        shown(&now["ratio"]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::figures::Bar;

    fn figure(gateway: f64, limit: f64) -> Figure {
        let mut figure = Figure::new("fan-out-100", "live delivery", "CPU s").bar(Bar::Times(1.5));
        figure.gateway = vec![gateway];
        figure.limit = vec![limit];
        figure
    }

    #[test]
    fn the_table_says_whether_a_bar_is_reached() {
        let text = table(&[figure(12.0, 10.0), figure(20.0, 10.0)]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| fan-out-100 | live delivery, CPU s | 12 | 10 | 1.20 | ≤ 1.5 × limit | reached |",
                "| fan-out-100 | live delivery, CPU s | 20 | 10 | 2.00 | ≤ 1.5 × limit | missed |",
            ]
        );
    }

    #[test]
    fn an_older_file_is_compared_figure_by_figure() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("reports/old.json");
        let report = |gateway| json(&[figure(gateway, 10.0)], &json!({}), &json!({}));
        write(&path, &report(20.0)).unwrap();
        let text = compare(&path, &report(15.0)).unwrap();
        assert!(
            text.ends_with("| fan-out-100 | live delivery, CPU s | 20 | 15 | -25 % | 2 | 1.50 |\n"),
            "{text}"
        );
        files::write(&path, "{\"version\":0}").unwrap();
        let refused = compare(&path, &report(1.0)).unwrap_err().to_string();
        assert!(refused.contains("version 1"), "{refused}");
    }

    #[test]
    fn the_table_says_what_never_came_and_what_the_limit_was() {
        let mut never = Figure::new("stalled", "cut after", "s").bar(Bar::AtMost(7.0));
        never.gateway = vec![f64::INFINITY];
        let mut memory = Figure::new("idle", "HTTP/1.1", "KiB a stream").bar(Bar::AtMost(16.0));
        memory.gateway = vec![13.0];
        memory.limit = vec![0.065];
        let text = table(&[never, memory]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "| stalled | cut after, s | never |  |  | ≤ 7 | missed |",
                "| idle | HTTP/1.1, KiB a stream | 13 | 0.065 | 200.00 | ≤ 16 | reached |",
            ]
        );
    }

    #[test]
    fn a_smoke_run_complains_of_what_did_not_come_out_and_of_names_that_come_twice() {
        let missed = figure(20.0, 10.0);
        assert_eq!(faults(std::slice::from_ref(&missed)), [""; 0]);
        let gaps = Figure::new("soak", "gaps", "events")
            .of(1.0)
            .bar(Bar::Exactly(0.0));
        assert_eq!(
            faults(&[missed.clone(), gaps, missed]),
            [
                "soak: gaps: 1 events, not = 0",
                "fan-out-100: live delivery: more than once",
            ]
        );
    }

    #[test]
    fn figures_of_one_report_only_and_those_that_never_came_are_compared_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("old.json");
        let report = |figures: &[Figure]| json(figures, &json!({}), &json!({}));
        let one = |scenario, name: &str, value| Figure::new(scenario, name, "s").of(value);
        let old = [
            one("stalled", "cut after", f64::INFINITY),
            one("stalled", "wall", 20.0),
            one("storm", "opened", 0.5),
        ];
        write(&path, &report(&old)).unwrap();
        let new = [one("stalled", "cut after", 5.0), one("stalled", "arrival", 0.5)];
        let text = compare(&path, &report(&new)).unwrap();
        let lines: Vec<&str> = text.lines().skip(4).collect();
        assert_eq!(
            lines,
            [
                "| stalled | cut after, s | never | 5 |  |  |  |",
                "| stalled | arrival, s |  | 0.500 | new |  |  |",
                "| stalled | wall, s | 20 |  | gone |  |  |",
            ]
        );
    }
}
