//! What every torture of a running server has: its time and its seed, a folder of its own, random numbers.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

/// A time as people write it.
pub(super) fn time(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write a number and `s`, `m` or `h`");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => number,
        "m" => number * 60,
        "h" => number * 3600,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(seconds))
}

/// A seed that nobody chose.
pub(super) fn drawn() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.as_nanos() as u64 & 0xffff_ffff
}

/// A command that talks to nobody.
pub(super) fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// A folder of its own for one run, whose path is short enough for sockets.
pub(super) fn folder() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("tltorture{}", std::process::id()));
    // One of an earlier process of that number.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// The last of what was done, as it is shown when something is wrong.
pub(super) fn last_steps(steps: &[String]) -> String {
    format!("last steps:\n  {}", steps[steps.len().saturating_sub(30)..].join("\n  "))
}

/// A client in user space, `trunkline bench`, with what it says of errors.
pub(super) struct Client(Child);

impl Client {
    /// Starts it.
    pub(super) fn start(command: &mut Command) -> Result<Client> {
        command.spawn().map(Client).context("cannot start a client")
    }

    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.0.try_wait().context("a client")
    }

    /// What it said of errors.
    pub(super) fn words(&mut self) -> String {
        let mut text = String::new();
        if let Some(errors) = &mut self.0.stderr {
            let _ = errors.take(4096).read_to_string(&mut text);
        }
        text
    }

    /// Goes away without a word.
    pub(super) fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Random numbers (xorshift64*): the same from the same seed.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `n`, which is not 0.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// One of these, if there are any.
    pub(super) fn one_of<T>(&mut self, all: impl IntoIterator<Item = T>) -> Option<T> {
        let mut all: Vec<T> = all.into_iter().collect();
        (!all.is_empty()).then(|| all.swap_remove(self.below(all.len())))
    }

    /// One of these, each as often as its number says.
    pub(super) fn weighted<T: Copy>(&mut self, all: &[(usize, T)]) -> T {
        let mut number = self.below(all.iter().map(|(weight, _)| weight).sum());
        let found = all.iter().find(|(weight, _)| {
            let found = number < *weight;
            number = number.saturating_sub(*weight);
            found
        });
        found.expect("the number is below the sum").1
    }

    /// A pause of up to so many milliseconds.
    pub(super) fn pause(&mut self, ms: usize) {
        std::thread::sleep(Duration::from_millis(self.below(ms + 1) as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence_and_times_have_units() {
        let draw = |seed| {
            let mut dice = Dice::new(seed);
            [0; 20].map(|_: usize| dice.below(10))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!([time("m").is_err(), time("10").is_err(), time("").is_err()], [true; 3]);
    }
}
