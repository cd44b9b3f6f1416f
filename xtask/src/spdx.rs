//! SPDX licence expressions, as far as crates use them: identifiers, `WITH`, `AND`, `OR`, parentheses, and the old
//! form with a slash for `OR`.
//!
//! `WITH` binds tightest, then `AND`, then `OR` (SPDX 2.3, annex D). `A WITH B` is one licence and must be allowed under
//! that whole name.

/// Whether the expression can be satisfied with licences for which `allowed` says yes. An error says what is wrong
/// with the expression.
pub(crate) fn satisfied(expression: &str, allowed: &dyn Fn(&str) -> bool) -> Result<bool, String> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, allowed };
    let answer = parser.any_of()?;
    match parser.words.first() {
        None => Ok(answer),
        Some(word) => Err(format!("`{word}` is not expected in `{expression}`")),
    }
}

struct Parser<'a> {
    words: &'a [&'a str],
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    fn any_of(&mut self) -> Result<bool, String> {
        let mut answer = self.all_of()?;
        while self.take("OR") {
            // Both sides are parsed whatever the first says, so that errors are found.
            answer |= self.all_of()?;
        }
        Ok(answer)
    }

    fn all_of(&mut self) -> Result<bool, String> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Ok(answer)
    }

    fn one(&mut self) -> Result<bool, String> {
        if self.take("(") {
            let answer = self.any_of()?;
            return if self.take(")") {
                Ok(answer)
            } else {
                Err("a parenthesis stays open".to_owned())
            };
        }
        let name = self.name()?;
        if self.take("WITH") {
            let exception = self.name()?;
            return Ok((self.allowed)(&format!("{name} WITH {exception}")));
        }
        Ok((self.allowed)(name))
    }

    fn name(&mut self) -> Result<&'a str, String> {
        match self.words.split_first() {
            Some((word, rest)) if !["(", ")", "OR", "AND", "WITH"].contains(word) => {
                self.words = rest;
                Ok(word)
            }
            Some((word, _)) => Err(format!("a licence is expected before `{word}`")),
            None => Err("a licence is expected at the end".to_owned()),
        }
    }

    fn take(&mut self, word: &str) -> bool {
        match self.words.split_first() {
            Some((first, rest)) if *first == word => {
                self.words = rest;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    fn with(allow: &[&str], expression: &str) -> Result<bool, String> {
        satisfied(expression, &|name| allow.contains(&name))
    }

    #[test]
    fn one_of_several_is_enough_for_or_and_all_are_needed_for_and() {
        assert_eq!(with(&["MIT"], "MIT"), Ok(true));
        assert_eq!(with(&["MIT"], "GPL-3.0-only"), Ok(false));
        assert_eq!(with(&["MIT"], "MIT OR GPL-3.0-only"), Ok(true));
        assert_eq!(with(&["MIT"], "GPL-3.0-only/MIT"), Ok(true));
        assert_eq!(with(&["MIT"], "MIT AND Unicode-3.0"), Ok(false));
        assert_eq!(with(&["MIT", "Unicode-3.0"], "(MIT OR Apache-2.0) AND Unicode-3.0"), Ok(true));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert_eq!(with(&["MIT"], "MIT OR A AND B"), Ok(true));
        assert_eq!(with(&["MIT"], "(MIT OR A) AND B"), Ok(false));
        assert_eq!(with(&["MIT"], "B AND A OR MIT"), Ok(true));
    }

    #[test]
    fn an_exception_makes_another_licence() {
        let expression = "Apache-2.0 WITH LLVM-exception";
        assert_eq!(with(&["Apache-2.0"], expression), Ok(false));
        assert_eq!(with(&[expression], expression), Ok(true));
        assert_eq!(with(&["MIT"], "Apache-2.0 WITH LLVM-exception OR MIT"), Ok(true));
    }

    #[test]
    fn broken_expressions_are_errors() {
        for broken in ["", "MIT OR", "(MIT", "MIT)", "AND MIT", "MIT Apache-2.0", "MIT WITH"] {
            assert!(with(&["MIT"], broken).is_err(), "{broken}");
        }
    }
}
