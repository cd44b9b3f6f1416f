//! "Did you mean …?": the known word nearest to a mistyped one.

/// The word of `known` that is nearest to `given`, when it is near enough to be a typing error:
/// at most a third of its letters differ (at least one may), counting a swap of neighbours as one.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|word| (strsim::osa_distance(&given, word), word))
        .filter(|(d, word)| *d <= (word.chars().count() / 3).max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_mistyped_word() {
        let known = ["queues", "queue_size", "serial", "volume"];
        assert_eq!(nearest("queeus", known), Some("queues"));
        assert_eq!(nearest("queue-size", known), Some("queue_size"));
        assert_eq!(nearest("vloume", known), Some("volume"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }
}
