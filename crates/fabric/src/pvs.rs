//! The PVs of a storage pool as its attributes list them: a path, or a tier, `:` and a path.

/// A PV in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed<'a> {
    /// The name of its tier; none for the first tier of the pool.
    pub tier: Option<&'a str>,
    /// Its path.
    pub path: &'a str,
}

impl<'a> Listed<'a> {
    /// Reads one. What stands before the first `:` is a tier if there is no `/` in it: a path has its `:`, if any, behind a `/`.
    #[must_use]
    pub fn read(text: &'a str) -> Listed<'a> {
        match text.split_once(':') {
            Some((tier, path)) if !tier.contains('/') => {
                Listed { tier: Some(tier.trim()), path: path.trim() }
            }
            _ => Listed { tier: None, path: text },
        }
    }

    /// Those of a list, between commas.
    pub fn all(text: &'a str) -> impl Iterator<Item = Listed<'a>> {
        let words = text.split(',').map(str::trim);
        words.filter(|word| !word.is_empty()).map(Listed::read)
    }
}

impl std::fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.tier {
            Some(tier) => write!(f, "{tier}:{}", self.path),
            None => f.write_str(self.path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tier_stands_before_a_path_and_a_path_may_have_colons() {
        let by_path = "/dev/disk/by-path/pci-0000:00:1f.2";
        let text = format!("/dev/sdb, fast:/dev/nvme0n1,{by_path},fast: {by_path},./a:b,,");
        let all: Vec<_> = Listed::all(&text).map(|one| (one.tier, one.path)).collect();
        assert_eq!(
            all,
            [
                (None, "/dev/sdb"),
                (Some("fast"), "/dev/nvme0n1"),
                (None, by_path),
                (Some("fast"), by_path),
                (None, "./a:b"),
            ]
        );
        let again: Vec<String> = Listed::all(&text).map(|one| one.to_string()).collect();
        assert_eq!(
            Listed::all(&again.join(",")).collect::<Vec<_>>(),
            Listed::all(&text).collect::<Vec<_>>()
        );
    }
}
