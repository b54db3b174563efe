//! What is wrong with a project, for people: what happened, where, how to repair it.

use std::{fmt, sync::Arc};

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::source::Place;

/// One problem of a project. All that are found are reported together, in the order of the source.
#[derive(Debug, Clone)]
pub struct Problem {
    /// Stable, e.g. `program::unknown_field`. Its page is `docs/errors/program-unknown_field.md`.
    pub code: &'static str,
    /// What happened, without a final full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// Where it is; `None` when it is not about a place in a file.
    pub place: Option<Place>,
    /// Other places that have to do with it.
    pub related: Vec<Related>,
    rendering: Rendering,
}

/// Another place that has to do with a problem.
#[derive(Debug, Clone)]
pub struct Related {
    /// What is there.
    pub message: String,
    /// Where.
    pub place: Place,
}

/// What a terminal shows of it: kept in the shape that `miette` borrows from.
#[derive(Debug, Clone, Default)]
struct Rendering {
    elsewhere: Vec<Elsewhere>,
    source: Option<NamedSource<Arc<str>>>,
}

/// A related place in another file than the problem's own.
#[derive(Debug, Clone)]
struct Elsewhere {
    message: String,
    label: LabeledSpan,
    source: NamedSource<Arc<str>>,
}

impl Problem {
    /// A problem without a place; the other parts are added to it.
    pub fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into(),
            help: None,
            place: None,
            related: Vec::new(),
            rendering: Rendering::default(),
        }
    }

    /// With advice.
    pub fn help(mut self, help: impl Into<String>) -> Problem {
        self.help = Some(help.into());
        self
    }

    /// With the place it is about.
    pub fn at(mut self, place: Option<Place>) -> Problem {
        self.rendering.source = place.as_ref().map(Place::named_source);
        if let Some(place) = &place {
            let here = &*place.origin.file;
            self.rendering
                .elsewhere
                .retain(|other| other.source.name() != here);
        }
        self.place = place;
        self
    }

    /// With another place.
    pub fn also(mut self, message: impl Into<String>, place: Option<Place>) -> Problem {
        let Some(place) = place else { return self };
        let message = message.into();
        let here = self.place.as_ref().map(|own| &own.origin.file);
        if here != Some(&place.origin.file) {
            self.rendering.elsewhere.push(Elsewhere {
                message: message.clone(),
                label: place.span(place.label.clone()),
                source: place.named_source(),
            });
        }
        self.related.push(Related { message, place });
        self
    }
}

/// In the order in which a person reads the files.
pub(crate) fn in_order(mut problems: Vec<Problem>) -> Vec<Problem> {
    problems.sort_by(|a, b| {
        let at = |problem: &Problem| {
            problem
                .place
                .as_ref()
                .map(|place| (Arc::clone(&place.origin.file), place.offset()))
        };
        at(a).cmp(&at(b))
    });
    problems
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.rendering
            .source
            .as_ref()
            .map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let own = self.place.as_ref()?;
        let label = own.label.clone();
        // Its line stands above the source, also when another label comes first.
        let first = LabeledSpan::new_primary_with_span(label, (own.offset, own.length));
        let same_file = self
            .related
            .iter()
            .filter(|related| related.place.origin.file == own.origin.file)
            .map(|related| related.place.span(Some(related.message.clone())));
        Some(Box::new(std::iter::once(first).chain(same_file)))
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.rendering.elsewhere.is_empty() {
            return None;
        }
        Some(Box::new(
            self.rendering
                .elsewhere
                .iter()
                .map(|place| place as &dyn Diagnostic),
        ))
    }
}

impl fmt::Display for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Elsewhere {}

impl Diagnostic for Elsewhere {
    fn severity(&self) -> Option<miette::Severity> {
        Some(miette::Severity::Advice)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        Some(&self.source)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(std::iter::once(self.label.clone())))
    }
}
