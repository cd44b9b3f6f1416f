//! "Did you mean …?": the known word nearest to a mistyped one.

/// The word of `known` that is nearest to `given`, when it is near enough to be a typing error:
/// at most a third of its letters differ (at least one may), counting a swap of neighbours as one.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|word| (distance(&given, word), word))
        .filter(|(d, word)| *d <= (word.chars().count() / 3).max(1))
        .min_by_key(|(d, _)| *d)
        .map(|(_, word)| word)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words: three rows of the usual
/// dynamic programme (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut two_back: Vec<usize> = vec![0; b.len() + 1];
    let mut back: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (back[j] + 1).min(row[j - 1] + 1).min(back[j - 1] + change);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(two_back[j - 2] + 1);
            }
        }
        two_back = std::mem::replace(&mut back, row);
    }
    back[b.len()]
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

    #[test]
    fn counts_edits() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
        assert_eq!(distance("acb", "abc"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
