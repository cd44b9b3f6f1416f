//! Reckons a formula over ranges, and puts values in place of names.
//!
//! A name is matched as the longest term name that stands at that place and does not go on as a word, so that names
//! may have spaces and signs in them ("high-water active").

use super::{Term, number};

/// Lowest and highest value of the formula when each term moves within its bounds; `None` when it has no value.
///
/// Each term is taken as moving by itself, also where it stands twice: the range may be too wide, never too narrow.
pub(super) fn evaluate(formula: &str, terms: &[Term]) -> Option<(f64, f64)> {
    let tokens = tokens(formula, terms)?;
    let mut reader = Reader { tokens: &tokens, terms, depth: 0 };
    let value = reader.sum()?;
    let whole = reader.tokens.is_empty() && value.0.is_finite() && value.1.is_finite();
    whole.then_some(value)
}

/// The formula with each name replaced by its value; a range stands in parentheses.
pub(super) fn substitute(formula: &str, terms: &[Term]) -> String {
    let mut text = String::new();
    let mut rest = formula;
    let mut inside_word = false;
    while let Some(next) = rest.chars().next() {
        if let Some(term) = (!inside_word).then(|| name_at(rest, terms)).flatten() {
            let exact = number(term.low) == number(term.high);
            text.push_str(&if exact { term.value() } else { format!("({})", term.value()) });
            rest = &rest[terms_len(term)..];
            inside_word = false;
            continue;
        }
        inside_word = next.is_alphanumeric() || next == '_';
        text.push(next);
        rest = &rest[next.len_utf8()..];
    }
    text
}

fn terms_len(term: &Term) -> usize {
    term.name.len()
}

/// The longest name that stands at the start of `text` and ends where a word ends.
fn name_at<'t>(text: &str, terms: &'t [Term]) -> Option<&'t Term> {
    let ends = |name: &str| {
        let next = text[name.len()..].chars().next();
        !next.is_some_and(|c| c.is_alphanumeric() || c == '_')
    };
    terms
        .iter()
        .filter(|term| !term.name.is_empty() && text.starts_with(&term.name) && ends(&term.name))
        .max_by_key(|term| term.name.len())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    Number(f64),
    Name(usize),
    Call(Function),
    Sign(char),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
    Min,
    Max,
    RoundUp,
    RoundDown,
}

const FUNCTIONS: [(&str, Function); 4] = [
    ("min(", Function::Min),
    ("max(", Function::Max),
    ("round_up(", Function::RoundUp),
    ("round_down(", Function::RoundDown),
];

fn tokens(formula: &str, terms: &[Term]) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = formula.trim_start();
    while let Some(next) = rest.chars().next() {
        let (token, length) = if let Some(term) = name_at(rest, terms) {
            let index = terms.iter().position(|other| std::ptr::eq(other, term))?;
            (Token::Name(index), term.name.len())
        } else if let Some((word, function)) = FUNCTIONS.iter().find(|(w, _)| rest.starts_with(w)) {
            (Token::Call(*function), word.len())
        } else if next.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
            (Token::Number(rest[..length].parse().ok()?), length)
        } else {
            let sign = match next {
                '×' | '*' => '×',
                '÷' | '/' => '÷',
                '−' | '-' => '−',
                '+' | '(' | ')' | ',' => next,
                _ => return None,
            };
            (Token::Sign(sign), next.len_utf8())
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Some(tokens)
}

/// Deepest nesting of parentheses.
const DEPTH_MAX: u32 = 32;

/// Recursive descent over the tokens that are left.
struct Reader<'t> {
    tokens: &'t [Token],
    terms: &'t [Term],
    depth: u32,
}

type Range = (f64, f64);

impl Reader<'_> {
    fn take(&mut self, sign: char) -> bool {
        let found = self.tokens.first() == Some(&Token::Sign(sign));
        if found {
            self.tokens = &self.tokens[1..];
        }
        found
    }

    fn sum(&mut self) -> Option<Range> {
        let mut value = self.product()?;
        loop {
            if self.take('+') {
                let (low, high) = self.product()?;
                value = (value.0 + low, value.1 + high);
            } else if self.take('−') {
                let (low, high) = self.product()?;
                value = (value.0 - high, value.1 - low);
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<Range> {
        let mut value = self.factor()?;
        loop {
            if self.take('×') {
                value = times(value, self.factor()?);
            } else if self.take('÷') {
                let (low, high) = self.factor()?;
                if low <= 0.0 && high >= 0.0 {
                    return None;
                }
                // Divides by the end itself, not by its reciprocal: an exact quotient stays exact.
                value = corners([value.0 / low, value.0 / high, value.1 / low, value.1 / high]);
            } else {
                return Some(value);
            }
        }
    }

    fn factor(&mut self) -> Option<Range> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        match *first {
            Token::Number(value) => Some((value, value)),
            Token::Name(index) => self.terms.get(index).map(|term| (term.low, term.high)),
            Token::Call(function) => self.call(function),
            Token::Sign('(') => {
                let value = self.nested()?;
                self.take(')').then_some(value)
            }
            Token::Sign('−') => {
                let (low, high) = self.factor()?;
                Some((-high, -low))
            }
            Token::Sign(_) => None,
        }
    }

    fn nested(&mut self) -> Option<Range> {
        self.depth += 1;
        let value = (self.depth <= DEPTH_MAX).then(|| self.sum()).flatten();
        self.depth -= 1;
        value
    }

    fn call(&mut self, function: Function) -> Option<Range> {
        let mut values = vec![self.nested()?];
        while self.take(',') {
            values.push(self.nested()?);
        }
        if !self.take(')') {
            return None;
        }
        let fold = |pick: fn(f64, f64) -> f64| {
            values.iter().copied().reduce(|a, b| (pick(a.0, b.0), pick(a.1, b.1)))
        };
        match function {
            Function::Min => fold(f64::min),
            Function::Max => fold(f64::max),
            Function::RoundUp => stepped(&values, f64::ceil, -SLACK),
            Function::RoundDown => stepped(&values, f64::floor, SLACK),
        }
    }
}

/// What binary fractions may miss of a whole step: 0.3 ÷ 0.1 is three steps, not a little less.
const SLACK: f64 = 1e-9;

fn stepped(values: &[Range], round: fn(f64) -> f64, slack: f64) -> Option<Range> {
    let &[(low, high), (step, same)] = values else { return None };
    let whole = |value: f64| round(value / step + slack) * step;
    (step > 0.0 && step == same).then(|| (whole(low), whole(high)))
}

fn times(a: Range, b: Range) -> Range {
    corners([a.0 * b.0, a.0 * b.1, a.1 * b.0, a.1 * b.1])
}

fn corners(values: [f64; 4]) -> Range {
    let pick = |pick: fn(f64, f64) -> f64| values.into_iter().reduce(pick).unwrap_or(f64::NAN);
    (pick(f64::min), pick(f64::max))
}
