//! Everything that can end a command early, as one shape: exit status and problems.

mod errors;

use std::{fmt, path::Path};

use miette::{Diagnostic, LabeledSpan, NamedSource};
use notation_model::{DeploymentId, Origin};
use serde_json::{Value as Json, json};

use crate::{advice::spelled, exit::Exit, pages, printer::Printer};

/// Why a command ended early.
#[derive(Debug)]
pub struct Failure {
    /// What the process ends with.
    pub exit: Exit,
    /// What is wrong: everything that was found, not the first.
    pub problems: Vec<Problem>,
}

/// One problem.
#[derive(Debug)]
pub enum Problem {
    /// Of the project: it knows places in the user's source.
    Project(Box<notation_program::Problem>),
    /// Of anything else.
    Plain(Plain),
}

/// A problem without a place in a source file.
#[derive(Debug)]
pub struct Plain {
    /// Stable; its page is in `docs/errors/`.
    pub code: &'static str,
    /// What happened, where.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// Causes and further lines, outermost first.
    pub related: Vec<String>,
    /// Where in the user's source, when it is about a place.
    pub place: Option<Box<Spot>>,
}

/// Places in the user's source.
#[derive(Debug)]
pub struct Spot {
    /// The first place.
    pub origin: Origin,
    /// The others, and what is there.
    others: Vec<(Origin, String)>,
    source: NamedSource<String>,
    labels: Vec<LabeledSpan>,
}

impl Spot {
    /// Places with what to write under them; those in other files than the first one's are named
    /// only. `None` when the file cannot be read (any more).
    pub fn of(root: &Path, places: &[(&Origin, String)]) -> Option<Box<Spot>> {
        let mut known = places.iter().filter(|(origin, _)| !origin.file.is_empty());
        let (origin, _) = known.next()?;
        let others = known.map(|(origin, label)| ((*origin).clone(), label.clone()));
        let others = others.collect();
        let text = std::fs::read_to_string(root.join(&*origin.file)).ok()?;
        let labels = places
            .iter()
            .filter(|(place, _)| place.file == origin.file)
            .map(|(place, label)| {
                let (start, length) = word_at(&text, place);
                LabeledSpan::new(Some(label.clone()), start, length)
            })
            .collect();
        Some(Box::new(Spot {
            origin: (*origin).clone(),
            others,
            source: NamedSource::new(&*origin.file, text).with_language("TypeScript"),
            labels,
        }))
    }
}

impl Spot {
    /// The other places that its own source does not show.
    fn elsewhere(&self) -> impl Iterator<Item = &(Origin, String)> {
        let others = self.others.iter();
        others.filter(|(place, _)| place.file != self.origin.file)
    }
}

/// Start and length in bytes of the word at a place.
fn word_at(text: &str, place: &Origin) -> (usize, usize) {
    let line = text
        .split_inclusive('\n')
        .take(place.line.saturating_sub(1) as usize)
        .map(str::len)
        .sum::<usize>();
    let rest = text.get(line..).unwrap_or("");
    let column = rest
        .char_indices()
        .nth(place.column.saturating_sub(1) as usize)
        .map_or(rest.len(), |(at, _)| at);
    let start = line + column;
    let word = text.get(start..).unwrap_or("");
    let length = word
        .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
        .unwrap_or(word.len());
    (start, length.max(usize::from(!word.is_empty())))
}

/// How commands end.
pub type Outcome = Result<Exit, Failure>;

impl Failure {
    /// One plain problem.
    pub fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Failure {
        Failure {
            exit,
            problems: vec![Problem::Plain(Plain {
                code,
                message: message.into(),
                help: None,
                related: Vec::new(),
                place: None,
            })],
        }
    }

    /// Wrong usage.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure::new(Exit::Usage, "usage::wrong", message)
    }

    /// With advice.
    pub fn help(mut self, text: impl Into<String>) -> Failure {
        if let Some(Problem::Plain(plain)) = self.problems.last_mut() {
            plain.help = Some(text.into());
        }
        self
    }

    /// With the commands of its advice as this deployment has to type them.
    pub fn spelled_for(mut self, deployment: &DeploymentId) -> Failure {
        for problem in &mut self.problems {
            if let Problem::Plain(plain) = problem {
                let help = plain.help.take();
                plain.help = help.map(|help| spelled(&help, deployment));
            }
        }
        self
    }

    /// With one more line.
    pub fn also(mut self, text: impl Into<String>) -> Failure {
        if let Some(Problem::Plain(plain)) = self.problems.last_mut() {
            plain.related.push(text.into());
        }
        self
    }

    /// Tells it, as text or as JSON events.
    pub fn tell(&self, printer: &Printer) {
        for (at, problem) in self.problems.iter().enumerate() {
            printer.event("error", problem.to_json());
            if printer.json {
                continue;
            }
            if at > 0 {
                printer.warn("");
            }
            let mut text = problem.to_text(printer);
            let code = problem.code();
            let again = self.problems[at + 1..].iter();
            // Once, below the last block that has this code.
            if pages::page(code).is_some() && !again.map(Problem::code).any(|other| other == code) {
                let trimmed = text.trim_end().len();
                text.truncate(trimmed);
                text.push_str(&format!("\n  more: notation help {code}\n"));
            }
            printer.warn(text);
        }
    }
}

/// The causes of an error, outermost first, without itself.
pub fn causes(error: &dyn std::error::Error) -> Vec<String> {
    let mut found = Vec::new();
    let mut next = error.source();
    while let Some(cause) = next {
        found.push(cause.to_string());
        next = cause.source();
    }
    found
}

impl Problem {
    fn code(&self) -> &'static str {
        match self {
            Problem::Project(problem) => problem.code,
            Problem::Plain(plain) => plain.code,
        }
    }

    fn to_json(&self) -> Json {
        let (message, help, place, related): (_, _, _, Vec<Json>) = match self {
            Problem::Project(problem) => {
                let related = problem.related.iter().map(|related| {
                    let place = place_json(&related.place.origin);
                    json!({ "message": related.message, "place": place })
                });
                let place = problem.place.as_ref().map(|place| &place.origin);
                (&problem.message, &problem.help, place, related.collect())
            }
            Problem::Plain(plain) => {
                let lines = plain.related.iter();
                let lines = lines.map(|message| json!({ "message": message }));
                let others = plain.place.iter().flat_map(|spot| &spot.others);
                let others = others.map(
                    |(place, message)| json!({ "message": message, "place": place_json(place) }),
                );
                let related = lines.chain(others);
                let place = plain.place.as_ref().map(|spot| &spot.origin);
                (&plain.message, &plain.help, place, related.collect())
            }
        };
        json!({
            "code": self.code(),
            "message": message,
            "help": help,
            "place": place.map(place_json),
            "related": related,
        })
    }

    fn to_text(&self, printer: &Printer) -> String {
        let theme = if printer.color {
            miette::GraphicalTheme::unicode()
        } else {
            miette::GraphicalTheme::unicode_nocolor()
        };
        let handler = miette::GraphicalReportHandler::new_themed(theme)
            .with_width(printer.width)
            .with_links(false)
            .with_context_lines(1);
        let bare = self.without_source();
        let diagnostic: &dyn Diagnostic = match (&bare, self) {
            (Some(bare), _) => bare,
            (None, Problem::Project(problem)) => problem.as_ref(),
            (None, Problem::Plain(plain)) => plain,
        };
        let mut text = String::new();
        match handler.render_report(&mut text, diagnostic) {
            Ok(()) => text,
            Err(fmt::Error) => diagnostic.to_string(),
        }
    }
}

impl Problem {
    /// The problem with its place in words, when a line of the file is too long to be shown.
    fn without_source(&self) -> Option<Plain> {
        let (text, origin, message, help) = match self {
            Problem::Project(problem) => {
                let place = problem.place.as_ref()?;
                let (message, help) = (problem.message.clone(), problem.help.clone());
                (&**place.text(), &place.origin, message, help)
            }
            Problem::Plain(plain) => {
                let spot = plain.place.as_ref()?;
                let (message, help) = (plain.to_string(), plain.help.clone());
                (spot.source.inner().as_str(), &spot.origin, message, help)
            }
        };
        let too_long = text.lines().any(|line| line.len() > LONGEST_LINE);
        too_long.then(|| Plain {
            code: self.code(),
            message: format!("{message} ({origin})"),
            help,
            related: Vec::new(),
            place: None,
        })
    }
}

/// Longest line of a source that is shown, in bytes: what draws it counts columns in 16 bits, and
/// nobody reads more.
const LONGEST_LINE: usize = 8000;

fn place_json(origin: &Origin) -> Json {
    json!({ "file": &*origin.file, "line": origin.line, "column": origin.column })
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        for line in &self.related {
            write!(f, "\n{line}")?;
        }
        let mut elsewhere = self.place.iter().flat_map(|spot| spot.elsewhere());
        elsewhere.try_for_each(|(place, label)| write!(f, "\n{label} ({place})"))
    }
}

impl std::error::Error for Plain {}

impl Diagnostic for Plain {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display + 'a>)
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.place
            .as_ref()
            .map(|spot| &spot.source as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let spot = self.place.as_ref()?;
        Some(Box::new(spot.labels.iter().cloned()))
    }
}
