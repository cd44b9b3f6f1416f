//! `list --where`: those objects of which something holds, by what the API answers of them.

use crate::exit::Failure;
use control::error::ApiError;
use fabric::attribute::Object;
use fabric::suggest;
use serde_json::Value;

/// What must hold of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Filter {
    /// A member of what the API answers, or an attribute.
    of: String,
    /// What it is, or is not.
    value: String,
    /// Whether it is.
    is: bool,
}

/// Reads `state=failed` and `dataplane!=main`.
pub(crate) fn parse(text: &str) -> Result<Filter, String> {
    let (of, value) =
        text.split_once('=').filter(|(of, _)| !of.trim_end_matches('!').is_empty()).ok_or_else(
            || format!("`{text}` says nothing; write `state=failed`, or `state!=open`"),
        )?;
    let is = !of.ends_with('!');
    let of = of.trim_end_matches('!').replace('-', "_");
    Ok(Filter { of, value: value.to_owned(), is })
}

/// Only those of a kind.
pub(crate) fn kind(word: &str) -> Filter {
    Filter { of: "kind".to_owned(), value: word.to_owned(), is: true }
}

/// Those of which all filters hold.
pub(super) fn those(
    object: Object,
    items: Vec<Value>,
    filters: &[Filter],
) -> Result<Vec<Value>, Failure> {
    for filter in filters {
        let there = |item: &Value| item.get(&filter.of).is_some();
        if object.attribute(&filter.of).is_none() && !items.is_empty() && !items.iter().any(there) {
            let known = items.iter().filter_map(Value::as_object).flat_map(|item| item.keys());
            let known = known.map(String::as_str).chain(object.attributes().map(|a| a.name));
            let what = format!("{} has no `{}`", object.one(), filter.of);
            let help = match suggest::nearest(&filter.of, known) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`trunkline {object} list -o json` shows what there is"),
            };
            return Err(ApiError::invalid(what).help(help).into());
        }
    }
    let holds = |item: &Value| filters.iter().all(|filter| filter.holds(object, item));
    Ok(items.into_iter().filter(holds).collect())
}

impl Filter {
    fn holds(&self, object: Object, item: &Value) -> bool {
        let attribute = || item.get("effective")?.get(&self.of);
        let found = item.get(&self.of).or_else(attribute);
        let same = found.is_some_and(|found| match found {
            Value::Array(all) => all.iter().any(|one| self.is_written(object, one)),
            one => self.is_written(object, one),
        });
        same == self.is
    }

    /// Whether a value is what was asked for, however it is written: `1GiB` is a number of bytes.
    fn is_written(&self, object: Object, value: &Value) -> bool {
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let wanted = || object.attribute(&self.of)?.parse(&self.value).ok();
        shown == self.value || wanted().is_some_and(|wanted| wanted.to_string() == shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_holds_is_found_by_members_and_attributes() {
        let items = vec![
            json!({"name": "a", "state": "open", "adapters": ["v0", "v1"], "effective": {"size": 1 << 30}}),
            json!({"name": "b", "state": "failed", "adapters": [], "effective": {"size": 4096, "read_only": true}}),
        ];
        let found = |texts: &[&str]| {
            let filters: Vec<Filter> = texts.iter().map(|text| parse(text).unwrap()).collect();
            let those = those(Object::Volume, items.clone(), &filters)?;
            Ok::<_, Failure>(those.iter().map(|one| one["name"].to_string()).collect::<String>())
        };
        let wanted: [(&[&str], &str); 8] = [
            (&[], "\"a\"\"b\""),
            (&["state=failed"], "\"b\""),
            (&["state!=failed"], "\"a\""),
            (&["size=1GiB"], "\"a\""),
            (&["read-only=true"], "\"b\""),
            (&["adapters=v1"], "\"a\""),
            (&["state=open", "size=4096"], ""),
            (&["name=b"], "\"b\""),
        ];
        for (texts, names) in wanted {
            assert_eq!(found(texts).unwrap(), names, "{texts:?}");
        }
        assert_eq!(found(&["stat=open"]).unwrap_err().to_string(), "a volume has no `stat`");
        for wrong in ["state", "=x", "!=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
