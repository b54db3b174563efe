//! Why there is no plan: every problem of an input at once (`style.md` §12).

use std::fmt;

use crate::PlanProblem;

/// Everything that keeps a plan from being made; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError {
    /// In a fixed order.
    pub problems: Vec<PlanProblem>,
}

impl std::error::Error for PlanError {}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

/// Refuses when there is something to refuse for.
pub(crate) fn fail_on(problems: Vec<PlanProblem>) -> Result<(), PlanError> {
    if problems.is_empty() {
        Ok(())
    } else {
        Err(PlanError { problems })
    }
}
