//! A program where nothing of it exists yet: what can be told of it without state.

use std::collections::BTreeMap;

use notation_model::{DeploymentId, DesiredGraph, EntryName, StageName};
use notation_planner::{Observed, Plan, PlanInput, PlanOptions, Prior, plan};
use notation_program::{Limits, evaluate};

use crate::{
    args::{Entry, Global},
    failure::Failure,
    printer::Printer,
    project, session,
};

/// A program, and how it would be set up.
pub struct Fresh {
    pub entry: EntryName,
    pub graph: DesiredGraph,
    pub plan: Plan,
}

impl Fresh {
    /// Evaluates the program of an entry and plans it for an empty state: nobody is called. A stage
    /// has a say in generated names only; without one they have some other in them.
    ///
    /// Errors: every problem of the program, and whatever keeps it from being set up.
    pub fn of(
        global: &Global,
        args: &Entry,
        command: &str,
        printer: &Printer,
    ) -> Result<Fresh, Failure> {
        let config = project::of(global)?;
        let entry = project::entry(&config, args, command)?;
        let types = session::types();
        let evaluated = evaluate(&config, &entry, &types, &Limits::default())?;
        evaluated.said.iter().for_each(|line| printer.say(line));
        let stage = args.stage.as_ref().or(config.default_stage.as_ref());
        let some_other = || -> StageName { "fresh".parse().expect("it is name-safe") };
        let deployment = DeploymentId {
            app: config.app.clone(),
            stage: stage.cloned().unwrap_or_else(some_other),
            entry: entry.clone(),
        };
        let planned = plan(&PlanInput {
            deployment: &deployment,
            types: &types,
            desired: &evaluated.graph,
            prior: &Prior::default(),
            observed: &Observed::default(),
            secrets: &BTreeMap::new(),
            options: &PlanOptions::default(),
        });
        let plan = planned.map_err(|error| Failure::refused(&config.root, &error))?;
        Ok(Fresh {
            entry,
            graph: evaluated.graph,
            plan,
        })
    }
}
