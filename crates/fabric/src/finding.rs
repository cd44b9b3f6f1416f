//! What checks have in common: how bad a finding is, and how rules are written down.

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A network can loop: such a configuration is refused.
    Loop,
    /// Something does not work, or will not when it is needed.
    Fault,
    /// It works, and should be otherwise.
    Advice,
}

impl Severity {
    /// Its word in output.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Severity::Loop => "loop",
            Severity::Fault => "fault",
            Severity::Advice => "advice",
        }
    }
}

/// Makes an enum `Rule`: its name, word, severity, what is wrong and what mends it.
macro_rules! rules {
    ($($name:ident $word:literal $severity:ident $what:literal, $fix:literal;)+) => {
        /// What can be wrong.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule {
            $(#[doc = $what] $name,)+
        }

        impl Rule {
            /// All rules.
            pub const ALL: &[Rule] = &[$(Rule::$name,)+];

            /// Its word in output.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Rule::$name => $word,)+ }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> $crate::finding::Severity {
                match self { $(Rule::$name => $crate::finding::Severity::$severity,)+ }
            }

            /// What is wrong.
            #[must_use]
            pub fn what(self) -> &'static str {
                match self { $(Rule::$name => $what,)+ }
            }

            /// What mends it.
            #[must_use]
            pub fn fix(self) -> &'static str {
                match self { $(Rule::$name => $fix,)+ }
            }
        }
    };
}

pub(crate) use rules;
