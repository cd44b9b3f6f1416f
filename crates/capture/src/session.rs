//! A file as a whole: prompts, commands, reports and what lies between.

mod hops;
mod labels;
mod ran_on;
mod refused;

use super::announced::Announced;
use super::changes::{self, Changes};
use super::dress;
use super::foreign;
use super::limits::{ENTRIES, LINES, entries_of, lines_of};
use super::looping::Loop;
use super::page::Page;
use super::prompt::{self, Command, Part};
use super::recognise::{self, Class, Expected, Kind, Known};
use super::text::{self, Line, Lines};
use super::{
    At, Captures, Chdev, FileInfo, Head, Host, Read, Report, Taken, called, gzip, host, hosts,
    language,
};
use crate::clean::{clean, is_host_name, is_word};
use hops::Hop;
use refused::Puzzle;

/// So many remarks on one file are kept about names that are none.
const NOTES: usize = 16;
const OUTSIDE: &str = "no report that is known here";
const ANY_HOST: &str = "a variable names the host that printed this, and no line before it does; let the loop print the name before each: for h in …; do echo == $h; ssh $h …; done";
const OF_NO_DEVICE: &str = "nothing says which device it is of, so it is not judged; keep the command before it, or let the loop print each name: for d in …; do echo $d; lsattr -El $d; done";
const AMBIGUOUS: &str =
    "could be the report of lsattr -Rl or of lsdev -range, or none; put the command before it";

/// What has been seen before the line that is read.
struct Session<'c, 't> {
    captures: &'c mut Captures,
    /// From the prompt.
    partition: Option<Read<String>>,
    /// Others that printed the same, of which the text holds one copy.
    alike: Vec<String>,
    /// The same outside the lines that name a host each.
    own_partition: Option<Option<Read<String>>>,
    /// The line before was a prompt without a command, as the first of a prompt's two lines is.
    prompt_goes_on: bool,
    command: Option<Command<'t>>,
    used: Vec<bool>,
    /// The reports that its parts print, as far as they are read.
    kinds: Vec<Option<Kind>>,
    /// Why what it prints is kept and not read: not as was expected, or not at all.
    whys: [Option<String>; 2],
    /// The device that a loop has named.
    named_device: Option<Read<String>>,
    /// The device that somebody's own line, or the file's name, says the next lines are of.
    of_device: Option<Read<&'t str>>,
    /// The hosts and shells that were entered and not left yet.
    hops: Vec<Hop>,
    /// The command before has left one of them, so that the line that says so tells nothing new.
    left: bool,
    /// The loop that was typed last, on one line or on several.
    looping: Loop<'t>,
    /// The host that a loop has named.
    named_host: Option<Read<String>>,
    /// How often lines were tried as the command's report in vain.
    misses: u32,
    /// The partition is what `hostname` said, which prompts without a host do not take back.
    host_asked: bool,
    /// Lines that were kept though their command is one that is read.
    puzzles: Vec<Puzzle>,
    /// What commands have changed for later.
    changes: Changes,
    /// The reader that found nothing last, and the line up to which it looked.
    vain: Option<(Kind, u32)>,
    /// What the reader that was asked last has found out about lines that are none of its report.
    known: Known<'t>,
    /// How many lines the file has.
    lines: u32,
    /// The numbers of the stretch's lines, where they do not grow by one.
    numbers: &'t [u32],
    /// So many lines readers have looked at and found nothing.
    wasted: u64,
    /// So many reports are copies for others that printed the same.
    copies: usize,
    /// So many reports were there before this file.
    reports_before: usize,
    /// What is kept of this file and of those before may reach this number.
    room: usize,
    /// So many lines of reports may be kept of this file yet.
    room_lines: usize,
    /// So many entries and lines of reports a file of this length may have.
    most: (usize, usize),
    /// Nothing is read any more: the room is used up.
    full: bool,
    /// A line of the file has told the time.
    dated: bool,
    /// The command is the one in the file's name: nobody has typed one yet.
    by_name: bool,
    /// It is the one in the name of a file that stands before the lines.
    by_line: bool,
    taken: Option<Taken>,
}

/// A text of so many capitals and no small letter was changed as a whole: what systems print has both.
const CAPITALS: usize = 200;

/// Reads one file.
pub(super) fn read(captures: &mut Captures, name: &str, bytes: &[u8], taken: Option<Taken>) {
    let left = LINES.saturating_sub(captures.lines);
    read_within(captures, name, bytes, taken, left);
}

/// The same, with so many lines of reports kept of it at most.
pub(super) fn read_within(
    captures: &mut Captures,
    name: &str,
    bytes: &[u8],
    taken: Option<Taken>,
    room_lines: usize,
) {
    let file = u32::try_from(captures.files.len()).unwrap_or(u32::MAX);
    let unpacked = gzip::unpack(bytes);
    let (text, mut notes) = text::decode(unpacked.as_ref().map_or(bytes, |(text, _)| text));
    notes.extend(unpacked.as_ref().map(|(_, note)| note.clone()));
    if !text.is_empty() && !text.ends_with('\n') {
        notes.push("the last line has no end".to_owned());
    }
    let letters = |letter: fn(&u8) -> bool| text.bytes().filter(letter).take(CAPITALS).count();
    if letters(u8::is_ascii_lowercase) == 0 && letters(u8::is_ascii_uppercase) == CAPITALS {
        notes.push(
            "is in capitals throughout, so that commands, attributes and states are not known in it: \
             paste it as it was printed"
                .to_owned(),
        );
    }
    let lines = text::count_lines(&text).try_into().unwrap_or(u32::MAX);
    captures.files.push(FileInfo {
        name: name.to_owned(),
        bytes: bytes.len().try_into().unwrap_or(u64::MAX),
        lines,
        taken: taken.clone(),
        notes,
        left_out_from: None,
    });
    let (entries, most_lines) = (entries_of(text.len()), lines_of(text.len()));
    let room_lines = room_lines.min(most_lines);
    let called::Called { command: typed, device, .. } = called::of_file(name);
    let of_levels = typed.as_ref().is_some_and(|typed| typed.contains("oslevel"));
    let bare = dress::undress(text, of_levels);
    let reports_before = captures.reports.len();
    let room = captures.entries().saturating_add(entries).min(ENTRIES);
    let mut session = Session {
        captures,
        partition: None,
        alike: Vec::new(),
        own_partition: None,
        prompt_goes_on: false,
        command: None,
        used: Vec::new(),
        kinds: Vec::new(),
        whys: [None, None],
        named_device: None,
        of_device: None,
        hops: Vec::new(),
        left: false,
        looping: Loop::default(),
        named_host: None,
        misses: 0,
        host_asked: false,
        puzzles: Vec::new(),
        changes: Changes::default(),
        vain: None,
        known: Known::default(),
        lines,
        numbers: &[],
        wasted: 0,
        copies: 0,
        reports_before,
        room,
        room_lines,
        most: (entries, most_lines),
        full: false,
        dated: false,
        by_name: false,
        by_line: false,
        taken,
    };
    if let Some(typed) = &typed {
        session.start(prompt::parse(typed, At { file, line: 1 }), false);
        session.by_name = true;
    }
    let at = At { file, line: 1 };
    session.of_device = device.as_deref().map(|value| Read { value, at });
    let (unread, refused) = (session.captures.unread.len(), session.captures.refused.len());
    let stretches = bare.parts();
    if bare.is_sorted()
        && let Some(info) = session.captures.files.last_mut()
    {
        info.notes.push(dress::ALTERNATE.to_owned());
    }
    for stretch in stretches {
        session.stretch(&stretch, file);
    }
    session.refuse_foreign(unread, refused);
}

impl<'t> Session<'_, 't> {
    /// So many lines are tried as the beginning of the report that the command promises.
    const PATIENCE: u32 = 16;
    /// So many lines are looked at in vain for each line of a file, before a reader that found nothing up to a line is not
    /// asked again before that line: headings without anything below them would cost the square of their number.
    const WASTE: u64 = 1;
    /// So many copies of reports are made in one file for hosts that printed the same.
    const COPIES: usize = 65_536;

    fn run(&mut self, mut lines: Lines<'t>) {
        let unread = self.captures.unread.len();
        while let Some(line) = lines.peek() {
            if self.full || self.fill(line) {
                return;
            }
            if line.is_blank() {
                self.pass_blank(line, unread);
                lines.next();
                continue;
            }
            let class = self.known.class(line, lines);
            if self.typed(line, class)
                || (matches!(class, Class::Date) && self.dated(line))
                || self.looped(line)
                || self.named(line)
                || self.changed(line)
                || self.labelled(line, class)
                || self.disconnected(line.text)
                || matches!(class, Class::Rule)
            {
                lines.next();
                continue;
            }
            if matches!(class, Class::Hosts)
                && let Some((mut hosts, count)) = hosts::heading(line, lines)
            {
                self.alike = hosts.split_off(1.min(hosts.len()));
                self.partition = hosts.pop().map(|value| Read { value, at: line.at });
                self.host_asked = self.partition.is_some();
                self.used.fill(false);
                self.misses = 0;
                lines.by_ref().take(count).for_each(drop);
                continue;
            }
            lines = self.content(line, class, lines);
        }
    }

    /// Whether as much is kept of the file as may be: what follows is left out, and that is said.
    fn fill(&mut self, line: Line<'_>) -> bool {
        let (many, long) = (self.captures.entries() >= self.room, self.room_lines == 0);
        self.full = many || long;
        if self.full
            && let Some(file) = self.captures.files.last_mut()
        {
            let (what, one, all) = match many {
                true => ("reports and passages of other text", self.most.0, ENTRIES),
                false => ("lines of reports", self.most.1, LINES),
            };
            file.left_out_from = Some(line.at.line);
            file.notes.push(format!(
                "so much that nothing is read from line {} on: {one} {what} are kept of one file, {all} of all together; divide it",
                line.at.line
            ));
        }
        self.full
    }

    /// A blank line does not divide text that is kept.
    fn pass_blank(&mut self, line: Line<'_>, since: usize) {
        if let Some(last) = self.captures.unread.get_mut(since..).and_then(|list| list.last_mut())
            && last.at.line + last.lines == line.at.line
        {
            last.lines += 1;
        }
    }

    /// Takes a prompt, with or without a command.
    fn typed(&mut self, line: Line<'t>, class: Class<'t>) -> bool {
        if matches!(class, Class::Prompt(_) | Class::Announced(_)) {
            self.of_device = None;
        }
        let goes_on = self.looping.open && line.text.starts_with('>');
        let (partition, typed) = match class {
            Class::Prompt(prompt) => {
                self.alike.clear();
                if let Some(text) = prompt.no_name {
                    self.no_name(text, line.at);
                    (self.partition, self.host_asked) = (None, false);
                }
                (prompt.partition, prompt.typed)
            }
            Class::Announced(Announced { host, typed }) => {
                if let Some(host) = host {
                    self.alike.clear();
                    self.partition = Some(Read { value: host.to_owned(), at: line.at });
                    self.host_asked = true;
                }
                self.start(prompt::parse(typed, line.at), goes_on);
                return true;
            }
            _ => return false,
        };
        match partition {
            Some(name) => {
                match &mut self.partition {
                    Some(known) if known.value == name => known.at = line.at,
                    other => *other = Some(Read { value: name.to_owned(), at: line.at }),
                }
                self.host_asked = false;
                if !self.hops.is_empty() {
                    self.is_back_at(name);
                }
            }
            // `$` says nothing about the host, unless the line before was the first half of this prompt, or the host was
            // asked for.
            None if self.prompt_goes_on || self.host_asked || self.in_shell() || goes_on => {}
            None => self.partition = None,
        }
        self.moves(typed, line.at);
        self.prompt_goes_on = typed.is_empty() && partition.is_some();
        self.start(prompt::parse(typed, line.at), goes_on);
        true
    }

    /// Says that what stands where a host's name should is none.
    fn no_name(&mut self, text: &str, at: At) {
        const SHOWN: usize = 40;
        let shown: String = clean(text).chars().take(SHOWN).collect();
        let more = if text.chars().nth(SHOWN).is_some() { "…" } else { "" };
        let note = format!("line {}: \"{shown}{more}\" is no host's name; it is not used", at.line);
        let Some(file) = self.captures.files.last_mut() else { return };
        // One of each text is enough.
        let known = |said: &String| {
            said.split_once(": ").map(|(_, text)| text)
                == note.split_once(": ").map(|(_, text)| text)
        };
        if file.notes.len() < NOTES && !file.notes.iter().any(known) {
            file.notes.push(note);
        }
    }

    /// Takes names from a report that cannot be any.
    fn without_false_names(&mut self, mut report: Report) -> Report {
        let head = report.head_mut();
        let host = head.partition.take_if(|read| !is_host_name(&read.value));
        let device = head.device.take_if(|read| !is_word(&read.value));
        for read in host.iter().chain(&device) {
            self.no_name(&read.value, read.at);
        }
        report
    }

    fn start(&mut self, mut command: Command<'t>, goes_on: bool) {
        let before = self.captures.reports.get_mut(self.reports_before..).unwrap_or_default();
        self.changes.typed(self.partition.as_ref(), &command, before);
        self.misses = 0;
        self.by_name = false;
        self.named_device = None;
        match self.command.take().filter(|_| goes_on) {
            // What a loop runs stands on several lines.
            Some(first) => {
                self.looping = self.looping.and(&command);
                if command.parts.iter().all(|part| matches!(part.program, "do" | "done")) {
                    command.typed = first.typed;
                }
                command.parts.splice(0..0, first.parts);
            }
            None => {
                self.looping = Loop::of(&command);
                self.named_host = None;
                self.used.clear();
            }
        }
        self.used.resize(command.parts.len(), false);
        self.whys = [None, None];
        self.kinds.clear();
        self.kinds.extend(command.parts.iter().map(|part| match recognise::by_command(part) {
            Expected::Report(kind) => Some(kind),
            _ => None,
        }));
        self.command = (!command.typed.value.is_empty()).then_some(command);
    }

    /// Takes the line that `date` printed.
    fn dated(&mut self, line: Line<'_>) -> bool {
        let Some(taken) = prompt::date(line) else { return false };
        // What stands before the first `date` is of the time that follows, not of the file's own: that may be of a copy.
        if !std::mem::replace(&mut self.dated, true) {
            let before = self.captures.reports.get_mut(self.reports_before..).unwrap_or_default();
            before.iter_mut().for_each(|report| report.head_mut().taken = None);
        }
        self.taken = Some(taken);
        true
    }

    /// Takes the line that `hostname` or `uname` printed; it is a report of its own.
    fn named(&mut self, line: Line<'_>) -> bool {
        let Some(command) = &self.command else { return false };
        let said = command.parts.iter().enumerate().find_map(|(index, part)| {
            let again = part.partition.is_some_and(prompt::is_variable) && line.text.contains(' ');
            let used = self.used.get(index).copied().unwrap_or(false) && !again;
            let about = host::line(part.program, &part.args, line).filter(|_| !used)?;
            Some((index, about, part.partition))
        });
        let Some((index, about, partition)) = said else { return self.badly_named(line) };
        let mut head = Head::new(line.at);
        head.command = Some(owned(&command.typed));
        head.taken = self.taken.clone();
        // The partition's name gives way to a host's name that is known.
        let host = about.hostname.clone();
        let name =
            host.or_else(|| about.partition_name.clone().filter(|_| self.partition.is_none()));
        let typed_at = command.typed.at;
        head.partition = match partition {
            None => {
                if name.is_some() {
                    (self.partition, self.host_asked) = (name, true);
                }
                self.partition.clone()
            }
            // Before what else a loop runs there.
            Some(variable) if prompt::is_variable(variable) => {
                if self.looping.says_host {
                    self.named_host.clone_from(&name);
                }
                name
            }
            Some(on) => Some(Read { value: on.to_owned(), at: typed_at }),
        };
        if let Some(used) = self.used.get_mut(index) {
            *used = true;
        }
        let report = self.without_false_names(Report::Host(Host { head, about }));
        self.captures.reports.push(report);
        true
    }

    /// Takes what `hostname` printed where it is no name.
    fn badly_named(&mut self, line: Line<'_>) -> bool {
        // In a loop over hosts the name is a heading.
        let Some(command) = self.command.as_ref().filter(|_| !self.looping.roams && !self.by_name)
        else {
            return false;
        };
        let asks = |part: &Part<'_>| part.program == "hostname" && part.args.is_empty();
        let index =
            command.parts.iter().zip(&self.used).position(|(part, used)| asks(part) && !used);
        let Some(used) = index.and_then(|index| self.used.get_mut(index)) else { return false };
        *used = true;
        self.no_name(line.trimmed(), line.at);
        (self.partition, self.host_asked) = (None, false);
        true
    }

    /// Takes the line that `chdev` printed; it is a report of its own.
    fn changed(&mut self, line: Line<'_>) -> bool {
        let Some(command) = &self.command else { return false };
        let Some((index, device, attributes)) = changes::made(command, line.trimmed()) else {
            return false;
        };
        let typed_at = command.typed.at;
        let named = |value: &str| Read { value: value.to_owned(), at: typed_at };
        let on = command.parts.get(index).and_then(|part| part.partition);
        let mut head = Head::new(line.at);
        head.device = Some(named(device));
        head.partition = on.map(named).or_else(|| self.partition.clone());
        head.taken = self.taken.clone();
        head.command = Some(owned(&command.typed));
        let report = self.without_false_names(Report::Chdev(Chdev { head, attributes }));
        self.changes.made(self.captures.reports.len() - self.reports_before, &report);
        self.captures.reports.push(report);
        true
    }

    /// Reads a report, or keeps the line.
    fn content(&mut self, line: Line<'t>, class: Class<'t>, mut lines: Lines<'t>) -> Lines<'t> {
        self.by_device(line);
        let expected = self.expected();
        // `fcstat -l` may begin as `fcstat` does, and `lsattr -H` as `lsdev -attr`.
        let as_another = |kind: &Kind| {
            matches!(
                (kind, expected),
                (Kind::Fcstat, Some(Kind::FcLatency)) | (Kind::LsdevAttr, Some(Kind::Lsattr))
            )
        };
        let by_heading = class.heading().filter(|kind| !as_another(kind));
        if by_heading != Some(Kind::IostatD)
            && let Some(why) = self.refused_form(by_heading)
        {
            return self.refuse(lines, why);
        }
        // What its reader has looked at in vain up to here holds no beginning of the promised report.
        let tried = self.vain.is_some_and(|(of, end)| Some(of) == expected && line.at.line < end);
        let kind = by_heading
            .or(expected.filter(|_| self.misses < Self::PATIENCE && !tried))
            .or_else(|| self.known.without_heading(line, lines));
        if let Some(kind) = kind.filter(|kind| !self.is_vain(*kind, line.at)) {
            self.loop_begins_again(kind);
            let (mut page, part) = self.page(kind, line.at, lines);
            let report = kind.reader().and_then(|reader| (reader.read)(&mut page));
            let after = page.ahead();
            self.known = page.into_known();
            let moved = after.peek().is_none_or(|next| !std::ptr::eq(next.text, line.text));
            if moved && let Some(report) = report {
                if let Some(used) = part.and_then(|index| self.used.get_mut(index)) {
                    *used = true;
                }
                match report.head().partition.is_none() && self.is_of_any_host(kind) {
                    true => self.refuse_report(&report, ANY_HOST.to_owned(), 0),
                    false => self.add(report, after),
                }
                return after;
            }
            let end = after.peek().map_or(u32::MAX, |next| next.at.line);
            self.wasted += u64::from(end.min(self.lines).saturating_sub(line.at.line));
            self.vain = Some((kind, end));
            self.misses += 1;
        }
        self.answered_by_an_error(line);
        if let Some((kind, command)) = expected.zip(self.command.as_ref())
            && !self.by_name
        {
            self.puzzles.push(Puzzle { at: line.at, kind, typed: command.typed.at });
        }
        let [puzzling, unread] = &mut self.whys;
        let why = match &self.command {
            Some(_) if self.by_name => OUTSIDE,
            Some(command) if expected.is_some() => {
                puzzling.get_or_insert_with(|| recognise::not_understood(command)).as_str()
            }
            Some(command) => unread
                .get_or_insert_with(|| {
                    format!("printed by `{}`, which is not read", command.typed.value)
                })
                .as_str(),
            None if is_short_list(line, lines) => AMBIGUOUS,
            None => OUTSIDE,
        };
        text::keep(&mut self.captures.unread, line, why);
        lines.next();
        lines
    }

    /// Whether a reader has looked at this line and found nothing, and too much was looked at in vain already.
    fn is_vain(&self, kind: Kind, at: At) -> bool {
        let looked = self.vain.is_some_and(|(of, end)| of == kind && at.line < end);
        looked && self.wasted > Self::WASTE * u64::from(at.line) + 1000
    }

    /// What else the command promises.
    fn promised(&self, but: Kind) -> Vec<Kind> {
        self.kinds.iter().flatten().copied().filter(|kind| *kind != but).collect()
    }

    /// The report that the command promises and that has not come yet.
    fn expected(&self) -> Option<Kind> {
        let command = self.command.as_ref()?;
        let mut parts = self.kinds.iter().zip(&self.used).zip(&command.parts);
        // What a loop runs prints more than one.
        parts.find_map(|((kind, used), part)| kind.filter(|_| !used || part.is_in_loop()))
    }

    /// A page for a report of this kind, with what the session knows about it; and the part of the command that it
    /// answers.
    fn page(&self, kind: Kind, at: At, lines: Lines<'t>) -> (Page<'t>, Option<usize>) {
        let mut head = Head::new(at);
        head.taken = self.taken.clone();
        let end = at.line.saturating_add(u32::try_from(self.room_lines).unwrap_or(u32::MAX));
        let found = self.command.as_ref().and_then(|command| {
            let mut kinds = self.kinds.iter().zip(&self.used);
            let unused = kinds.position(|(of, used)| *of == Some(kind) && !used);
            // A loop runs one command several times.
            let index = unused.or_else(|| self.kinds.iter().position(|of| *of == Some(kind)))?;
            Some((index, &command.typed, command.parts.get(index)?))
        });
        // What a loop asks for is about the device that it has named.
        let named = self.named_device.as_ref().filter(|_| self.looping.asks);
        let place = found.map_or(at, |(_, typed, _)| typed.at);
        head.partition = match self.is_of_any_host(kind) {
            true => None,
            false => self.host_of(found.map(|(.., part)| part), place),
        };
        let Some((index, typed, part)) = found else {
            head.device = named.cloned().or_else(|| self.of_device.as_ref().map(owned));
            let mut page = Page::new(kind, lines, head);
            (page.looping, page.end) = (self.looping, end);
            return (page, None);
        };
        let first_use = !self.used[index];
        if !self.by_name {
            head.command = Some(owned(typed));
        }
        if first_use {
            head.device =
                recognise::device(part).map(|name| Read { value: name.to_owned(), at: place });
        }
        head.device = head.device.or_else(|| named.cloned());
        let mut page = Page::new(kind, lines, head);
        (page.looping, page.end) = (self.looping, end);
        page.promised = self.promised(kind);
        page.in_force = kind == Kind::Lsattr && recognise::in_force(part);
        page.format = recognise::format(part);
        page.asked = recognise::attribute(part).map(str::to_owned);
        page.delimiter = part.after("-fmt").and_then(|text| text.chars().next());
        page.filter = part.filter.map(str::to_owned);
        (page, Some(index))
    }

    /// How many lines a report has, without those of other hosts between them.
    fn lines_of(&self, head: &Head) -> usize {
        if self.numbers.is_empty() {
            return head.lines();
        }
        let up_to = self.numbers.partition_point(|line| *line <= head.last);
        let before = self.numbers.partition_point(|line| *line < head.first.line);
        up_to.saturating_sub(before).max(1)
    }

    /// A list of attributes without its device is judged by nobody, which the answer has to say.
    fn say_of_no_device(report: &mut Report) {
        let list =
            matches!(report, Report::Lsattr(_) | Report::LsdevAttr(_) | Report::LsattrRange(_));
        let head = report.head_mut();
        if list && head.device.is_none() && head.incomplete.is_none() {
            head.incomplete = Some(OF_NO_DEVICE.into());
        }
    }

    /// Keeps a report, or refuses it when most of it is in another language.
    fn add(&mut self, report: Report, to: Lines<'_>) {
        let mut report = self.without_false_names(report);
        let head = report.head();
        let unread: u32 = head.unread.iter().map(|unread| unread.lines).sum();
        let lines = self.lines_of(head);
        if (unread >= 3 || (unread == 2 && head.incomplete.is_some()))
            && (head.incomplete.is_some()
                || usize::try_from(unread).unwrap_or(usize::MAX) >= lines.div_ceil(4))
        {
            let texts = || head.unread.iter().map(|unread| unread.text.as_str());
            let language = match head.unread.as_slice() {
                [one] => language::detect(&one.text),
                _ => language::detect(&texts().collect::<Vec<_>>().join("\n")),
            };
            if let Some(language) = language {
                let end = to.peek().map_or(head.last, |next| next.at.line - 1);
                self.refuse_report(&report, foreign::why(report.command(), language), end);
                return;
            }
        }
        self.changes.mark(&mut report);
        Self::say_of_no_device(&mut report);
        let head = report.head();
        let of_one = self.partition == head.partition;
        let lines = self.lines_of(head);
        self.room_lines = self.room_lines.saturating_sub(lines);
        let of_copies = lines.saturating_mul(self.alike.len());
        let few = self.copies + self.alike.len() <= Self::COPIES && of_copies <= self.room_lines;
        if of_one && !few && self.copies < Self::COPIES {
            self.copies = Self::COPIES;
            let note = "too many hosts printed the same: from some line on only the first of them is given it";
            self.captures
                .files
                .last_mut()
                .into_iter()
                .for_each(|file| file.notes.push(note.into()));
        }
        let alike = self.alike.iter().filter(|_| of_one && few).map(|host| {
            let mut copy = report.clone();
            if let Some(partition) = &mut copy.head_mut().partition {
                partition.value.clone_from(host);
            }
            copy
        });
        let alike: Vec<Report> = alike.collect();
        self.copies += alike.len();
        self.room_lines = self.room_lines.saturating_sub(lines * alike.len());
        self.captures.reports.push(report);
        self.captures.reports.extend(alike);
    }
}

fn owned(read: &Read<&str>) -> Read<String> {
    Read { value: read.value.to_owned(), at: read.at }
}

/// Words on lines of their own, as lists of allowed values are.
fn is_short_list(line: Line<'_>, lines: Lines<'_>) -> bool {
    let word = |line: &Line<'_>| {
        !line.is_blank()
            && line.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    word(&line) && lines.take(3).filter(word).count() == 3
}
