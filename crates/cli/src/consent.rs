//! A person's yes, before something is changed that cannot be changed back.

use crate::{exit::Exit, failure::Failure, printer::Printer};

/// What was agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// `--yes`.
    Given,
    /// To be asked for.
    Ask,
}

impl Consent {
    /// That of the flag `--yes`.
    pub fn by(yes: bool) -> Consent {
        if yes { Consent::Given } else { Consent::Ask }
    }

    /// Asks, unless it was given. Errors: `usage::needs_yes` where nobody can answer, and
    /// `run::refused`, saying what was `left` as it is.
    pub fn obtain(
        self,
        command: &str,
        question: &str,
        left: &str,
        printer: &Printer,
    ) -> Result<(), Failure> {
        match self {
            Consent::Given => Ok(()),
            Consent::Ask if !printer.can_ask() => Err(Failure::needs_yes(command)),
            Consent::Ask if printer.ask(question) => Ok(()),
            Consent::Ask => Err(refused(left)),
        }
    }
}

/// A person said no.
pub fn refused(left: &str) -> Failure {
    Failure::new(Exit::Fixable, "run::refused", left)
}
