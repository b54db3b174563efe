//! Values as they are known while planning (`engine.md` §3, *Forecast*).

use notation_model::{
    Expr, OutputRef, Params, Role, Scope, SecretName, Segment, Shape, Unknown, Value,
};

use crate::{
    PlanProblem,
    decide::reverted,
    outlook::Survey,
    params::{Parts, assemble},
};

/// Which outputs of peers are meant (`engine.md` §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A step before settling: those after a peer's first step of this plan.
    Step,
    /// The same, as people see it: what does not exist yet is shown by reference.
    Shown,
    /// The settle step: the newest ones.
    Settled,
}

/// Values as one resource sees them at a moment.
pub(crate) struct View<'v, 'p, 'a> {
    pub survey: &'v Survey<'p, 'a>,
    pub from: usize,
    pub moment: Moment,
}

impl Survey<'_, '_> {
    /// Parameters of a desired resource in one shape.
    pub fn params(
        &self,
        number: usize,
        shape: Shape,
        moment: Moment,
    ) -> Result<Params, Box<PlanProblem>> {
        let wanted = &self.program.wanted[number];
        let outlook = &self.outlooks[number];
        let key = match (&outlook.key, wanted.ty.key_field()) {
            (Some(value), Some((field, _))) if outlook.key_given => Some((field, value)),
            _ => None,
        };
        let parts = Parts {
            config: &wanted.desired.config,
            key,
            contributions: &wanted.desired.contributions,
        };
        let view = View {
            survey: self,
            from: number,
            moment,
        };
        assemble(wanted.ty, &parts, shape, &view).map_err(|error| {
            let resource = wanted.desired.id.clone();
            let origin = wanted.desired.origin.clone();
            Box::new(PlanProblem::unfit(resource, error, origin))
        })
    }

    /// An expression of a desired resource, as values stand at a moment.
    pub fn resolve(&self, number: usize, expr: &Expr, moment: Moment) -> Value {
        expr.resolve(&View {
            survey: self,
            from: number,
            moment,
        })
    }
}

impl Scope for View<'_, '_, '_> {
    fn output(&self, source: &OutputRef) -> Option<Value> {
        let survey = self.survey;
        let Some(peer) = survey.program.target(self.from, &source.resource) else {
            return Some(Unknown::output(source.clone()).into());
        };
        let wanted = &survey.program.wanted[peer];
        let outlook = &survey.outlooks[peer];
        let field = match source.path.first() {
            Some(Segment::Key(field)) => field.as_str(),
            Some(Segment::Index(_)) | None => return None,
        };
        let declared = wanted.ty.fields.get(field);
        let is_key = declared.is_some_and(|declared| declared.key);
        let stable = is_key || declared.is_some_and(|declared| declared.stable);
        let same_cycle = wanted.component == survey.program.wanted[self.from].component;
        let early = same_cycle && self.moment != Moment::Settled;
        let Some(kept) = outlook.kept() else {
            if is_key
                && self.moment != Moment::Shown
                && let Some(key) = &outlook.key
                && source.path.len() == 1
            {
                return Some(key.clone());
            }
            let again = self.moment == Moment::Settled
                && same_cycle
                && !stable
                && self.written_again(peer, field);
            return Some(unknown(source, again));
        };
        let record = &survey.history.past[kept].record;
        if stable {
            return source.read(&record.outputs);
        }
        let bare;
        let new_params = if early {
            // After a revert it is bare; else as it is recorded.
            bare = survey
                .revert_writes(peer)
                .then(|| reverted(survey.program.wanted[peer].ty, record));
            bare.as_ref()
        } else {
            outlook.written.as_ref()
        };
        match new_params {
            None => source.read(&record.outputs),
            Some(params) => match params.get(field) {
                Some(value) if value.is_known() => source.read(params),
                Some(Value::Unknown(token)) if source.path.len() == 1 => {
                    let unknown = Unknown {
                        sources: token.sources.clone(),
                        text: source.to_string().into(),
                    };
                    Some(unknown.into())
                }
                Some(_) | None => {
                    let again = same_cycle && self.moment == Moment::Settled;
                    Some(unknown(source, again))
                }
            },
        }
    }

    fn name(&self) -> Option<Value> {
        self.survey.outlooks[self.from].key.clone()
    }

    fn secret(&self, name: &SecretName) -> Option<Value> {
        self.survey.input.secrets.get(name).cloned()
    }
}

impl View<'_, '_, '_> {
    /// Whether an output of a new peer moves after its first step.
    fn written_again(&self, peer: usize, field: &str) -> bool {
        let survey = self.survey;
        let wanted = &survey.program.wanted[peer];
        let completed = survey.bare[peer] && !wanted.desired.contributions.is_empty();
        let is_param = wanted
            .ty
            .fields
            .get(field)
            .is_some_and(|declared| declared.role == Role::Param);
        let contributed = wanted
            .desired
            .contributions
            .iter()
            .any(|contribution| contribution.field == field);
        let moves = completed && (!is_param || contributed);
        moves || (survey.outlooks[peer].may_rewrite && (!is_param || contributed))
    }
}

fn unknown(source: &OutputRef, again: bool) -> Value {
    let mut token = Unknown::output(source.clone());
    if again {
        // Another value than the one a step saw before: the two must not compare equal.
        token.text.push_str(" (settled)");
    }
    token.into()
}
