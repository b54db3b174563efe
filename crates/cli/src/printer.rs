//! Where words go: what was asked for to stdout, everything else said to a person to stderr.

use std::{
    io::{self, IsTerminal as _, Write as _},
    sync::OnceLock,
};

use serde_json::{Map, Value as Json};

use crate::args::Global;

/// How this process talks.
#[derive(Debug, Clone, Copy)]
pub struct Printer {
    /// One JSON object per line on stdout, nothing else there.
    pub json: bool,
    /// Say less.
    pub quiet: bool,
    /// Say more.
    pub verbose: bool,
    /// Columns of the terminal, or `COLUMNS`, or 100.
    pub width: usize,
    /// Colours on stderr.
    pub color: bool,
}

/// How a terminal that somebody reads wants its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    /// Without colours.
    Plain,
    /// With colours.
    Coloured,
}

impl Printer {
    /// Looks at the flags, the environment and the terminal.
    pub fn new(global: &Global) -> Printer {
        if global.no_color {
            anstream::ColorChoice::Never.write_global();
        }
        let color = !matches!(
            anstream::AutoStream::choice(&io::stderr()),
            anstream::ColorChoice::Never
        );
        Printer {
            json: global.json,
            quiet: global.quiet,
            verbose: global.verbose,
            width: width(),
            color,
        }
    }

    /// Prints what the command was asked for, to a person.
    pub fn out(&self, text: impl AsRef<str>) {
        if !self.json {
            asked_for(line(&mut anstream::stdout(), text.as_ref()));
        }
    }

    /// The person who reads stdout at a terminal; nobody when it goes to a file or a program.
    pub fn reader(&self) -> Option<Paint> {
        let choice = anstream::AutoStream::choice(&io::stdout());
        match (self.json, io::stdout().is_terminal(), choice) {
            (true, _, _) | (_, false, _) => None,
            (false, true, anstream::ColorChoice::Never) => Some(Paint::Plain),
            (false, true, _) => Some(Paint::Coloured),
        }
    }

    /// Prints text that is asked for as it is, e.g. a script: the same with `--json`.
    pub fn raw(&self, text: &str) {
        let mut stdout = io::stdout().lock();
        asked_for(
            stdout
                .write_all(text.as_bytes())
                .and_then(|()| stdout.flush()),
        );
    }

    /// Tells a person something.
    pub fn say(&self, text: impl AsRef<str>) {
        if !self.quiet {
            said(line(&mut anstream::stderr(), text.as_ref()));
        }
    }

    /// Tells a person something that `--quiet` must not hide.
    pub fn warn(&self, text: impl AsRef<str>) {
        said(line(&mut anstream::stderr(), text.as_ref()));
    }

    /// One JSON event, with `event` and `at` first. Nothing without `--json`.
    pub fn event(&self, event: &str, fields: Json) {
        if !self.json {
            return;
        }
        let mut object = Map::new();
        object.insert("event".into(), event.into());
        object.insert("at".into(), now().into());
        if let Json::Object(fields) = fields {
            object.extend(fields);
        }
        let text = Json::Object(object).to_string();
        asked_for(line(&mut anstream::stdout(), &text));
    }

    /// Whether moving progress may be drawn: a terminal, and a person looking at it.
    pub fn moving(&self) -> bool {
        !self.json && !self.quiet && io::stderr().is_terminal()
    }

    /// Whether a question can be asked.
    pub fn can_ask(&self) -> bool {
        !self.json && io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// Asks; anything but y or yes is a no.
    pub fn ask(&self, question: &str) -> bool {
        let mut stderr = anstream::stderr();
        said(write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush()));
        let mut answer = String::new();
        io::stdin().read_line(&mut answer).is_ok()
            && matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
    }
}

/// RFC 3339, in UTC, to the millisecond.
pub fn now() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
        .to_string()
}

fn width() -> usize {
    let asked = std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok());
    let seen = || {
        terminal_size::terminal_size_of(io::stderr())
            .or_else(|| terminal_size::terminal_size_of(io::stdout()))
            .map(|(columns, _)| usize::from(columns.0))
    };
    asked.or_else(seen).unwrap_or(100).clamp(40, 400)
}

fn line(stream: &mut impl io::Write, text: &str) -> io::Result<()> {
    let ended = text.ends_with('\n');
    let end = if ended { "" } else { "\n" };
    // One write, so that lines of two processes on one terminal do not mix.
    let whole = format!("{text}{end}");
    stream
        .write_all(whole.as_bytes())
        .and_then(|()| stream.flush())
}

/// Why stdout took no more, the first time that it did not: a process has one stdout.
static NOT_WRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Why what was asked for could not be written, when it could not. A reader that went away
/// (`notation state list main | head`) has what it wanted.
pub fn not_written() -> Option<&'static io::Error> {
    let error = NOT_WRITTEN.get()?;
    (error.kind() != io::ErrorKind::BrokenPipe).then_some(error)
}

/// Whether nothing more of what is asked for reaches anybody.
pub fn nobody_reads() -> bool {
    NOT_WRITTEN.get().is_some()
}

/// Remembers that what was asked for could not be written; a deploy goes on without an audience.
pub fn asked_for(written: io::Result<()>) {
    if let Err(error) = written {
        // The first reason counts.
        let _ = NOT_WRITTEN.set(error);
    }
}

/// Words for a person that nobody hears are no problem of ours.
fn said(_: io::Result<()>) {}
