//! The report: a table to read, a file to compare with, and what changed since an older one.

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
    let old_figures = list(&old);
    for now in list(new) {
        let same = |then: &&Value| then["scenario"] == now["scenario"] && then["name"] == now["name"];
        let Some(then) = old_figures.iter().find(same) else {
            continue;
        };
        let shown = |value: &Value| value.as_f64().map_or_else(String::new, number);
        let change = match (then["gateway"].as_f64(), now["gateway"].as_f64()) {
            (Some(then), Some(now)) if then != 0.0 => format!("{:+.0} %", (now / then - 1.0) * 100.0),
            (Some(_) | None, Some(_) | None) => String::new(),
        };
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "| {} | {}, {} | {} | {} | {change} | {} | {} |",
            word(&now["scenario"]),
            word(&now["name"]),
            word(&now["unit"]),
            shown(&then["gateway"]),
            shown(&now["gateway"]),
            shown(&then["ratio"]),
            shown(&now["ratio"]),
        );
    }
    Ok(text)
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
}
