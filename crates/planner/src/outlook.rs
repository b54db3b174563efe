//! What becomes of each desired resource: the incarnation it goes on with or gets, and what
//! completing it does (`engine.md` §10 steps 2 and 7).

use std::collections::BTreeMap;

use indexmap::IndexMap;
use notation_model::{Incarnation, Params, Value};

use crate::{
    PlanInput,
    decide::{differing, reverted},
    past::History,
    program::Program,
};

/// What becomes of one desired resource.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outlook {
    pub lineage: Lineage,
    pub generation: u32,
    /// The key as it will be: exact, unknown, or `None` when the provider makes it.
    pub key: Option<Value>,
    /// The key comes from here, not from the config.
    pub key_given: bool,
    pub name_cut: bool,
    /// Fields that may turn out to replace it.
    pub may_replace: Vec<String>,
    /// What completing it does, as far as is known.
    pub change: Differs,
    /// Parameters of a kept one that is written: what its outputs will be made of.
    pub written: Option<Params>,
    /// Settling may write it (again).
    pub may_rewrite: bool,
}

/// Which record a desired resource comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// None: it is new.
    #[default]
    Nothing,
    /// The one it goes on with.
    Kept(usize),
    /// The live one that its new incarnation takes over from, and why.
    Replaced(usize, Vec<String>),
    /// The one found gone, which is made again under the same generation.
    Gone(usize),
}

impl Outlook {
    /// The record it goes on with; `None` for a new incarnation.
    pub fn kept(&self) -> Option<usize> {
        match self.lineage {
            Lineage::Kept(past) => Some(past),
            Lineage::Nothing | Lineage::Replaced(..) | Lineage::Gone(_) => None,
        }
    }

    /// The live record that a new incarnation takes over from.
    pub fn replaces(&self) -> Option<usize> {
        match self.lineage {
            Lineage::Replaced(past, _) => Some(past),
            Lineage::Nothing | Lineage::Kept(_) | Lineage::Gone(_) => None,
        }
    }
}

/// How sure a difference is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Differs {
    #[default]
    No,
    /// Only a value known later decides.
    Perhaps,
    Yes,
}

/// Everything that looking ahead needs.
pub(crate) struct Survey<'p, 'a> {
    pub input: &'p PlanInput<'a>,
    pub program: &'p Program<'a>,
    pub history: &'p History<'a>,
    /// Resources that are replaced whatever their values, and why.
    pub forced: BTreeMap<usize, Vec<String>>,
    pub outlooks: Vec<Outlook>,
    /// Kept resources that are reverted, and new ones that start bare.
    pub bare: Vec<bool>,
    /// Names that the program writes by hand, by identity space, and who gets them.
    pub written_names: IndexMap<(&'p str, &'p str), usize>,
}

impl Survey<'_, '_> {
    /// The incarnation a desired resource gets.
    pub fn incarnation(&self, number: usize) -> Incarnation {
        Incarnation {
            resource: self.program.wanted[number].desired.id.clone(),
            generation: self.outlooks[number].generation,
        }
    }

    /// Whether a kept resource's revert writes something.
    pub fn revert_writes(&self, number: usize) -> bool {
        self.outlooks[number].kept().is_some_and(|past| {
            let past = &self.history.past[past];
            let ty = self.program.wanted[number].ty;
            self.bare[number]
                && (past.record.in_doubt
                    || !differing(ty, &past.record.applied, &reverted(ty, &past.record)).is_empty())
        })
    }

    /// Some step of it before settling writes, or may.
    pub fn is_written(&self, number: usize) -> bool {
        let outlook = &self.outlooks[number];
        outlook.kept().is_none() || outlook.change != Differs::No || self.revert_writes(number)
    }
}
