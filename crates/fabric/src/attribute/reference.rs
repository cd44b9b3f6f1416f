//! The reference page of attributes, in Markdown.

use super::{Attribute, Default, Object};
use std::fmt::Write;

/// The page `docs/guide/attributes.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# Attributes\n\n\
         This page is made from the server's own table by `trunkline attributes --markdown`; a test\n\
         fails when it is stale. The names are those of configuration files and of the API; on the\n\
         command line `queue_size` is `--queue-size`. Where objects come in kinds, only those of the\n\
         kinds that are named have the attribute. Sizes take `KiB`, `MiB`, `GiB`, `TiB` or plain\n\
         bytes. *Takes effect* says when a change of an existing object is felt.\n",
    );
    for object in Object::ALL {
        section(&mut page, object);
    }
    page
}

fn section(page: &mut String, object: Object) {
    let title = object.title();
    let kinds = object.attributes().any(|attribute| !attribute.kinds.is_empty());
    let (head, rule) = if kinds { (" kind |", "---|") } else { ("", "") };
    // Writing into a String cannot fail.
    let _ = write!(
        page,
        "\n## {title}\n\n| attribute |{head} takes | default | takes effect | meaning |\n\
         |---|{rule}---|---|---|---|\n"
    );
    for attribute in object.attributes().filter(|attribute| !attribute.hidden) {
        let kind = match (kinds, attribute.kinds) {
            (false, _) => String::new(),
            (true, []) => " all |".to_owned(),
            (true, list) => format!(" {} |", list.join(", ")),
        };
        let _ = writeln!(
            page,
            "| `{}` |{kind} {} | {} | {} | {} |",
            attribute.name,
            attribute.kind.expectation(),
            attribute.default_text(),
            attribute.effect.word(),
            attribute.meaning
        );
    }
}

impl Attribute {
    /// The default as a few words of Markdown.
    pub fn default_text(&self) -> String {
        match self.default {
            Default::Required => "required".to_owned(),
            Default::Fixed("") => "empty".to_owned(),
            Default::Fixed(text) => format!("`{text}`"),
            Default::Inherit(parent) => format!("the {}'s `{}`", parent.object, parent.name),
            Default::Derived(text) => text.to_owned(),
        }
    }
}
