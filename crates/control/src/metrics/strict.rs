//! A strict reader of OpenMetrics text (<https://prometheus.io/docs/specs/om/open_metrics_spec/>): for tests, so that what a scraper
//! refuses is refused here first.

use std::collections::{BTreeMap, BTreeSet};

/// A family that is being read.
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    /// Name and labels of every sample so far.
    seen: BTreeSet<(&'a str, BTreeMap<String, String>)>,
    samples: Vec<(&'a str, BTreeMap<String, String>, f64)>,
}

/// How many samples there are in a document, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<usize, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("it does not end with `# EOF`")?;
    let mut finished = BTreeSet::new();
    let mut family: Option<Family<'_>> = None;
    let mut units = BTreeMap::new();
    let mut count = 0;
    for line in body.lines() {
        let wrong = |what: &str| Err(format!("{what}: {line}"));
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(word), Some(name), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                return wrong("a comment that says nothing");
            };
            let new = family.as_ref().is_none_or(|family| family.name != name);
            if new {
                if let Some(family) = family.take() {
                    finish(&family)?;
                    finished.insert(family.name);
                }
                if finished.contains(name) {
                    return wrong("a family begins twice");
                }
                let (seen, samples) = (BTreeSet::new(), Vec::new());
                family = Some(Family { name, kind: "unknown", seen, samples });
            }
            let family = family.as_mut().ok_or("no family")?;
            if !family.samples.is_empty() {
                return wrong("a comment behind samples");
            }
            match word {
                "TYPE" => family.kind = rest,
                "UNIT" if name.ends_with(&format!("_{rest}")) => drop(units.insert(name, rest)),
                "HELP" if !rest.is_empty() => {}
                _ => {
                    return wrong("a comment that is none of TYPE, UNIT and HELP, or does not fit");
                }
            }
            continue;
        }
        let (name, labels, value) = sample(line).ok_or_else(|| format!("no sample: {line}"))?;
        let Some(family) = family.as_mut() else { return wrong("a sample without a family") };
        let suffixes: &[&str] = match family.kind {
            "counter" => &["_total", "_created"],
            "histogram" => &["_bucket", "_sum", "_count", "_created"],
            "info" => &["_info"],
            "gauge" => &[""],
            _ => return wrong("a family of a kind that is not used here"),
        };
        let suffix = name.strip_prefix(family.name);
        if !suffix.is_some_and(|suffix| suffixes.contains(&suffix)) {
            return wrong("a sample that is not of its family");
        }
        if family.kind == "counter" && (value < 0.0 || value.is_nan()) {
            return wrong("a counter below zero");
        }
        if !family.seen.insert((name, labels.clone())) {
            return wrong("the same sample twice");
        }
        family.samples.push((name, labels, value));
        count += 1;
    }
    family.as_ref().map_or(Ok(()), finish)?;
    Ok(count)
}

/// Buckets rise, the last one is `+Inf`, and it is the count.
fn finish(family: &Family<'_>) -> Result<(), String> {
    if family.kind != "histogram" {
        return Ok(());
    }
    let mut series: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (name, labels, value) in &family.samples {
        let mut labels = labels.clone();
        if name.ends_with("_bucket") {
            let le = labels.remove("le").ok_or_else(|| format!("{name} without `le`"))?;
            let bound = if le == "+Inf" { f64::INFINITY } else { le.parse().map_err(|_| le)? };
            series.entry(labels).or_default().push((bound, *value));
        } else if name.ends_with("_count") {
            counts.insert(labels, *value);
        }
    }
    for (labels, buckets) in &series {
        let rising = buckets.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        let last = buckets.last().copied().unwrap_or_default();
        if !rising || last.0 != f64::INFINITY || counts.get(labels) != Some(&last.1) {
            return Err(format!("buckets of {} {labels:?}: {buckets:?}", family.name));
        }
    }
    if series.len() == counts.len() { Ok(()) } else { Err(format!("{}: counts", family.name)) }
}

/// `name{label="value",…} number`.
fn sample(line: &str) -> Option<(&str, BTreeMap<String, String>, f64)> {
    let end = line.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        while !rest.starts_with('}') {
            let (label, behind) = rest.split_once("=\"")?;
            let mut value = String::new();
            let mut chars = behind.char_indices();
            let end = loop {
                match chars.next()? {
                    (at, '"') => break at,
                    (_, '\\') => value.push(match chars.next()?.1 {
                        'n' => '\n',
                        c @ ('"' | '\\') => c,
                        _ => return None,
                    }),
                    (_, c) => value.push(c),
                }
            };
            let plain = label.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            if !plain || label.is_empty() || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            rest = &behind[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        rest = rest.strip_prefix('}')?;
    }
    let number = rest.strip_prefix(' ')?;
    let value = number.parse().ok()?;
    (!name.is_empty() && !number.contains(' ')).then_some((name, labels, value))
}

#[test]
fn the_reader_refuses_what_a_scraper_would() {
    let head = "# HELP a_seconds A\n# TYPE a_seconds histogram\n# UNIT a_seconds seconds\n";
    let rest = "a_seconds_sum 1\na_seconds_count 3\na_seconds_bucket{le=\"1.0\"} 2\n";
    let last = "a_seconds_bucket{le=\"+Inf\"} 3\n# EOF\n";
    assert_eq!(read(&format!("{head}{rest}{last}")), Ok(4));
    for broken in [
        format!("{head}{rest}# EOF\n"),
        format!("{head}{rest}a_seconds_bucket{{le=\"1.7976931348623157e308\"}} 3\n# EOF\n"),
        format!("{head}{rest}{last}\n"),
        format!("{head}{rest}{rest}{last}"),
        format!("{head}{}{last}", rest.replace("} 2", "} 4")),
        "# TYPE a counter\na 1\n# EOF\n".to_owned(),
        "# TYPE a gauge\na 1\n# TYPE b gauge\nb 1\n# TYPE a gauge\na 2\n# EOF\n".to_owned(),
        "# TYPE a gauge\na{l=\"x\",l=\"y\"} 1\n# EOF\n".to_owned(),
        "a 1\n# EOF\n".to_owned(),
    ] {
        assert!(read(&broken).is_err(), "{broken}");
    }
}
