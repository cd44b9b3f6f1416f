//! The command line.

use std::time::Duration;

use crate::controls::{CONTROL_CONTROLS, CONTROLS, Control, POOL_CONTROLS};
use crate::less::{CONTROL_PARTS, Less, PARTS};

pub(crate) const HELP: &str = "\
Runs the data path on a simulated kernel and clock, and judges what its clients see.

Usage: trunkline-sim [OPTIONS]

Options:
      --part <PART>       Of the data path, of the same on an LU of a pool, or of the control plane: data, pool, control [default: data]
      --seeds <COUNT>     Run so many seeds [default: 2000]
      --from <SEED>       The first of them [default: 1]
      --for <TIME>        Run seeds for so long instead: 90, 90s, 10m, 8h
      --jobs <COUNT>      On so many threads; 0: one for each CPU [default: 1]
      --seed <SEED>       Run this one and print the end of its story
      --lines <COUNT>     So many lines of it [default: 400]
      --trace             All of them, each as it is told
      --control <NAME>    Put a fault in; it has to be found within the seeds. `all`: each of them. Behind --part
      --twice             Run each twice; it has to be the same story
      --shrink            Look for the smallest run that fails as this seed does

Less than the seed has drawn, as a shrunken run prints it:
      --salt <NUMBER>     Other choices in the course of the run
      --clients <COUNT>   At most so many clients
      --requests <COUNT>  At most so many requests
      --without <PARTS>   Without some of what happens, separated by commas
  -h, --help              Print this

Exit code: 0 when nothing was found, or every control was; 1 otherwise; 2 for a wrong option.
";

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Part {
    #[default]
    Data,
    Pool,
    Control,
}

/// As on the command line, before other options.
impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Part::Data => "",
            Part::Pool => "--part pool ",
            Part::Control => "--part control ",
        })
    }
}

pub(crate) struct Options {
    pub part: Part,
    pub seeds: u64,
    pub from: u64,
    pub time: Option<Duration>,
    pub jobs: usize,
    pub seed: Option<u64>,
    pub lines: usize,
    pub trace: bool,
    pub twice: bool,
    pub shrink: bool,
    pub controls: Vec<Option<Control>>,
    pub less: Less,
}

impl Options {
    /// `None`: help is asked for.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Option<Options>, String> {
        let mut options = Options {
            part: Part::Data,
            seeds: 2000,
            from: 1,
            time: None,
            jobs: 1,
            seed: None,
            lines: 400,
            trace: false,
            twice: false,
            shrink: false,
            controls: vec![None],
            less: Less::default(),
        };
        while let Some(word) = words.next() {
            match word.as_str() {
                "-h" | "--help" => return Ok(None),
                "--trace" => options.trace = true,
                "--twice" => options.twice = true,
                "--shrink" => options.shrink = true,
                _ => {
                    let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
                    options.set(&word, &value)?;
                }
            }
        }
        Ok(Some(options))
    }

    fn set(&mut self, word: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is no number"));
        match word {
            "--part" => {
                self.part = match value {
                    "data" => Part::Data,
                    "pool" => Part::Pool,
                    "control" => Part::Control,
                    _ => {
                        return Err(format!(
                            "there is no part {value}; there are data, pool, control"
                        ));
                    }
                }
            }
            "--seeds" => self.seeds = number()?,
            "--from" => self.from = number()?,
            "--for" => self.time = Some(time(value).ok_or(format!("{word}: {value} is no time"))?),
            "--jobs" => self.jobs = number()? as usize,
            "--seed" => self.seed = Some(number()?),
            "--lines" => self.lines = number()? as usize,
            "--control" => self.controls = controls(self.part, value)?,
            "--salt" => self.less.salt = number()?,
            "--clients" => self.less.clients = Some(number()?.max(1) as usize),
            "--requests" => self.less.requests = Some(number()? as u32),
            "--without" => self.less.without = parts(value)?,
            _ => return Err(format!("there is no {word}; see --help")),
        }
        Ok(())
    }
}

/// A number of seconds, or of another unit.
fn time(value: &str) -> Option<Duration> {
    let digits = value.trim_end_matches(['s', 'm', 'h']);
    let unit = match &value[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    Some(Duration::from_secs(digits.parse::<u64>().ok()?.checked_mul(unit)?))
}

fn controls(part: Part, name: &str) -> Result<Vec<Option<Control>>, String> {
    let all: &[Control] = match part {
        Part::Data => &CONTROLS,
        Part::Pool => &POOL_CONTROLS,
        Part::Control => &CONTROL_CONTROLS,
    };
    if name == "all" {
        return Ok(all.iter().copied().map(Some).collect());
    }
    let found = all.iter().copied().find(|control| control.name == name);
    let names = || all.iter().map(|control| control.name).collect::<Vec<_>>().join(", ");
    let control =
        found.ok_or_else(|| format!("there is no control {name}; there are {}", names()))?;
    Ok(vec![Some(control)])
}

fn parts(names: &str) -> Result<Vec<&'static str>, String> {
    let part = |name| {
        let of = |(part, what): &(&str, &str)| format!("{part} ({what})");
        let all = || PARTS.iter().chain(&CONTROL_PARTS).map(of).collect::<Vec<_>>().join(", ");
        Less::part(name).ok_or_else(|| format!("there is no part {name}; there are {}", all()))
    };
    names.split(',').map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Option<Options>, String> {
        Options::read(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_a_small_run_prints_is_read_again() {
        let without = vec!["deaths", "nesting"];
        let less = Less { salt: 3, clients: Some(1), requests: Some(12), without };
        let options = read(&format!("--seed 7{less}")).expect("words").expect("no help");
        assert_eq!((options.seed, options.less), (Some(7), less));
    }

    #[test]
    fn times_have_units_and_nonsense_is_told() {
        let seconds = |words| read(words).map(|options| options.and_then(|o| o.time));
        assert_eq!(seconds("--for 10m"), Ok(Some(Duration::from_secs(600))));
        assert_eq!(seconds("--for 90"), Ok(Some(Duration::from_secs(90))));
        for wrong in ["--for m", "--for 3d", "--seed x", "--without rain", "--control no", "--seed"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
