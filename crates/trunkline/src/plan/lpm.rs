//! `trunkline plan lpm`

use super::read;
use super::show::{AnswerArgs, FactsArgs, called, read_text};
use crate::cli::Global;
use crate::exit::Failure;
use clap::{Args, ValueEnum};
use control::error::ApiError;
use fabric::suggest::nearest;
use planner::facts::Facts;
use planner::lpm::{CapturedPaths, LpmError, Outcomes, Plan, Server, captured_paths};
use std::path::PathBuf;
use toml::{Table, Value};

pub(super) const HELP: &str = "\
Say what is known; what is left out counts as unknown, and every outcome that is possible then is \
followed and named. A server is a list of KEY=VALUE: machine (`9080-M9S`) or generation (`POWER9`), \
firmware, vios, adapter (feature code), num_io_queues, num_per_range, viosnpiv0_num_per_range, \
limit_intr, port_adapters.

Captures of a client and its VIOS tell where it is and with how many queues (lsmap -all -npiv, attributes \
of fcsN, vfchostN and viosnpiv0, the statistics of vfchostN, ioslevel, oslevel); only where it moves is then \
said with --to, by KEY=VALUE or a file of such lines. The answer lists every input with its lines, and what is \
missing with the command that would tell it; --from says it instead, as in --from adapter=EN1A.

The same as a file, for servers with names, and for steps in any order:

  steps = [{ move = \"b\" }, \"reconfigure\", { move = \"a\" }]
  [client]
  system = \"aix\"
  level = \"7200-05-03\"
  at = \"a\"
  queues = 8
  [server.a]
  machine = \"9009-42A\"
  firmware = \"FW950\"
  vios = \"3.1.2.10\"
  [server.b]
  generation = \"POWER8\"
  vios = \"2.2.6\"

Examples:
  trunkline plan lpm --system aix --level 7200-05-03 --queues 8 \\
      --from machine=9009-42A,firmware=FW950,vios=3.1.2.10 --to generation=POWER8,vios=2.2.6 --back
  trunkline plan lpm captures/ --to new.toml
  trunkline plan lpm vios1.txt aixdb1.txt --client aixdb1 --to machine=9105-42A,firmware=FW1030,vios=4.1.0
  trunkline plan lpm plan.toml --explain
  trunkline plan lpm plan.toml -o json";

/// A client's operating system.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum System {
    /// AIX
    Aix,
    /// IBM i
    Ibmi,
    /// Linux, by the level of its kernel
    Linux,
    /// SUSE Linux Enterprise Server
    Sles,
    /// Red Hat Enterprise Linux
    Rhel,
}

/// Options of `plan lpm`.
#[derive(Debug, Args)]
pub(crate) struct LpmArgs {
    /// The plan as a TOML file, `-` for standard input; or captures of the client and its VIOS, files and folders,
    /// which then tell what the options below would, except --to
    #[arg(value_name = "PATH", required_unless_present = "from", conflicts_with_all = ["system", "level", "queues", "num_io_queues", "back", "reconfigure"])]
    paths: Vec<PathBuf>,
    /// With captures: the client that moves [default: every one]
    #[arg(long, value_name = "NAME", requires = "paths")]
    client: Option<String>,
    /// The client's operating system
    #[arg(
        long,
        value_enum,
        default_value = "aix",
        value_name = "SYSTEM",
        help_heading = "One client"
    )]
    system: System,
    /// Its level, as in `7200-05-03` or `7.4 TR6`
    #[arg(long, value_name = "LEVEL", help_heading = "One client")]
    level: Option<String>,
    /// Queues that it has now [default: as many as it gets where it is]
    #[arg(long, value_name = "N", help_heading = "One client")]
    queues: Option<u32>,
    /// Its attribute num_io_queues [default: the system's]
    #[arg(long, value_name = "N", help_heading = "One client")]
    num_io_queues: Option<u32>,
    /// The server where it is; with captures, what is to be taken instead of what they tell of it
    #[arg(long, value_name = "KEY=VALUE,…", value_parser = server, requires = "to", help_heading = "One client")]
    from: Option<Table>,
    /// A server to which it moves, or a TOML file that says the same; several for a chain of moves
    #[arg(long, value_name = "KEY=VALUE,…|FILE", value_parser = server, help_heading = "One client")]
    to: Vec<Table>,
    /// Then it moves back to where it came from
    #[arg(long, help_heading = "One client")]
    back: bool,
    /// In the end its adapter is configured anew
    #[arg(long, help_heading = "One client")]
    reconfigure: bool,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    facts: FactsArgs,
}

/// Keys whose values are texts.
const TEXTS: [&str; 5] = ["machine", "generation", "firmware", "vios", "adapter"];
/// Keys whose values are numbers.
const NUMBERS: [&str; 4] =
    ["num_io_queues", "num_per_range", "viosnpiv0_num_per_range", "port_adapters"];
/// The key that is true or false.
const SWITCH: &str = "limit_intr";

/// A server from `KEY=VALUE,…`; nothing between two commas is allowed, so that an unknown server is `--to ""`.
fn server(text: &str) -> Result<Table, String> {
    if text.ends_with(".toml") && !text.contains('=') {
        let read = std::fs::read_to_string(text).map_err(|error| format!("{text}: {error}"))?;
        return read.parse().map_err(|error| format!("{text}: {error}"));
    }
    let mut table = Table::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, value) = part
            .split_once('=')
            .map(|(key, value)| (key.trim(), value.trim()))
            .ok_or_else(|| format!("expected KEY=VALUE, not `{part}`"))?;
        let value = if TEXTS.contains(&key) {
            Value::String(value.to_owned())
        } else if NUMBERS.contains(&key) {
            let number: u32 =
                value.parse().map_err(|_| format!("{key}: expected a number, not `{value}`"))?;
            Value::Integer(number.into())
        } else if key == SWITCH {
            let switch = value
                .parse()
                .map_err(|_| format!("{key}: expected true or false, not `{value}`"))?;
            Value::Boolean(switch)
        } else {
            let all = || TEXTS.into_iter().chain(NUMBERS).chain([SWITCH]);
            let near = nearest(key, all());
            let meant = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let all: Vec<&str> = all().collect();
            return Err(format!("no key `{key}`{meant} There are {}", all.join(", ")));
        };
        if table.insert(key.to_owned(), value).is_some() {
            return Err(format!("{key} stands there twice"));
        }
    }
    Ok(table)
}

/// Works it out and prints it.
pub(super) fn run(global: &Global, args: &LpmArgs) -> Result<(), Failure> {
    let facts = args.facts.read()?;
    if args.are_captures() {
        return captures(global, args, &facts);
    }
    let (text, what) = match args.paths.first() {
        Some(path) if args.to.is_empty() && args.from.is_none() => {
            (read_text(path)?, format!("{}: ", called(path)))
        }
        Some(_) => {
            return Err(ApiError::invalid("a plan says by itself where the client moves")
                .help("leave --from and --to out, or give captures instead of the plan")
                .into());
        }
        None => (args.as_plan(), String::new()),
    };
    let refuse = |error: LpmError| ApiError::excerpt(&format!("{what}{error}"));
    let plan = Plan::read(&text, &facts).map_err(refuse)?;
    let outcome = plan.outcome(&facts).map_err(refuse)?;
    args.answer.show(global, &outcome, &outcome, None)
}

/// Works out every path of the captures.
fn captures(global: &Global, args: &LpmArgs, facts: &Facts) -> Result<(), Failure> {
    let reading = read::read(&args.paths)?;
    let mut to: Vec<(String, Server)> = Vec::new();
    for (number, table) in (1..).zip(&args.to) {
        let name = if number == 1 { "target".to_owned() } else { format!("target{number}") };
        let server = table.clone().try_into().map_err(|error: toml::de::Error| {
            ApiError::invalid(format!("--to: {}", error.message()))
        })?;
        to.push((name, server));
    }
    if to.is_empty() {
        return Err(ApiError::invalid("captures say where the client is, not where it moves")
            .help("add --to new.toml, or --to vios=3.1.4,firmware=FW950,machine=9105-42A")
            .into());
    }
    let CapturedPaths { mut paths, mut unmapped } = captured_paths(&reading.captures);
    if let Some(client) = &args.client {
        paths.retain(|path| path.client.eq_ignore_ascii_case(client));
        let of = |name: &String| name.eq_ignore_ascii_case(client);
        unmapped.retain(|adapter| adapter.client.as_ref().is_some_and(of));
    }
    if paths.is_empty() {
        let of = args.client.as_ref().map_or(String::new(), |client| format!(" of {client}"));
        return Err(ApiError::invalid(format!(
            "no virtual Fibre Channel adapter{of} is mapped in the captures"
        ))
        .help("capture `lsmap -all -npiv` on the VIOS, with a prompt or `hostname` before it")
        .into());
    }
    let mut outcomes = Vec::new();
    for mut path in paths {
        let adapter = path.adapter.as_deref().unwrap_or("its adapter");
        let name = format!("{} {adapter} over {}", path.client, path.server);
        let refuse = |error: LpmError| ApiError::excerpt(&format!("{name}: {error}"));
        if let Some(from) = &args.from {
            path.take(from).map_err(refuse)?;
        }
        let plan = path.moves(&to);
        plan.check(facts).map_err(refuse)?;
        let outcome = plan.outcome(facts).map_err(refuse)?;
        outcomes.push((name, path, outcome));
    }
    let files = reading.captures.files.iter().map(|file| file.name.clone()).collect();
    let outcomes = Outcomes { paths: outcomes, unmapped, files };
    args.answer.show(global, &outcomes, &outcomes, Some(("inputs", reading.as_json()?)))
}

impl LpmArgs {
    /// Whether the paths are captures: a plan is one TOML file, or standard input without a server to move to.
    fn are_captures(&self) -> bool {
        match &self.paths[..] {
            [] => false,
            [one] if one.extension().is_some_and(|end| end == "toml") => false,
            [one] if one.as_os_str() == "-" => !self.to.is_empty(),
            _ => true,
        }
    }

    /// The options as the file that says the same.
    fn as_plan(&self) -> String {
        let mut client = Table::new();
        let system = self.system.to_possible_value().map(|value| value.get_name().to_owned());
        client.insert("system".to_owned(), system.unwrap_or_default().into());
        client.insert("at".to_owned(), "source".into());
        if let Some(level) = &self.level {
            client.insert("level".to_owned(), level.clone().into());
        }
        for (key, value) in [("queues", self.queues), ("num_io_queues", self.num_io_queues)] {
            if let Some(value) = value {
                client.insert(key.to_owned(), i64::from(value).into());
            }
        }
        let mut servers = Table::new();
        let mut steps: Vec<Value> = Vec::new();
        let go = |name: &str| Value::Table(Table::from_iter([("move".to_owned(), name.into())]));
        servers.insert("source".to_owned(), self.from.clone().unwrap_or_default().into());
        for (number, to) in (1..).zip(&self.to) {
            let name = if number == 1 { "target".to_owned() } else { format!("target{number}") };
            steps.push(go(&name));
            servers.insert(name, to.clone().into());
        }
        if self.back {
            steps.push(go("source"));
        }
        if self.reconfigure {
            steps.push("reconfigure".into());
        }
        let plan = [("client", client.into()), ("server", servers.into()), ("steps", steps.into())];
        Table::from_iter(plan.map(|(key, value): (&str, Value)| (key.to_owned(), value)))
            .to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_keys_and_values() {
        let table = server("vios=3.1.2.10, num_io_queues=16,limit_intr=true").unwrap();
        assert_eq!(table["vios"].as_str(), Some("3.1.2.10"));
        assert_eq!(table["num_io_queues"].as_integer(), Some(16));
        assert_eq!(table["limit_intr"].as_bool(), Some(true));
        assert!(server("").unwrap().is_empty());
    }

    #[test]
    fn what_is_wrong_with_a_server_is_said() {
        let cases = [
            ("vios", "expected KEY=VALUE, not `vios`"),
            ("num_io_queues=many", "num_io_queues: expected a number, not `many`"),
            ("limit_intr=1", "limit_intr: expected true or false, not `1`"),
            ("vios=3,vios=4", "vios stands there twice"),
            ("num_io_queue=3", "no key `num_io_queue`; did you mean `num_io_queues`? There are"),
        ];
        for (text, expected) in cases {
            let error = server(text).unwrap_err();
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }
}
