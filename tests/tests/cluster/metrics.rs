//! Reading what a program counts of itself.

/// The sum of the series of a metric that counts, of those that have all of `labels`.
///
/// `text` is in the [text format](https://prometheus.io/docs/instrumenting/exposition_formats/).
pub(crate) fn sum(text: &str, name: &str, labels: &[(&str, &str)]) -> u64 {
    text.lines()
        .filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            let (found, series_labels) = series.split_once('{').unwrap_or((series, ""));
            let fits = labels
                .iter()
                .all(|(label, value)| series_labels.contains(&format!("{label}=\"{value}\"")));
            (found == name && fits).then(|| value.parse::<u64>().expect("a small count is printed as digits"))
        })
        .sum()
}
