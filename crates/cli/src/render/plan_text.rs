//! A plan as people read it (`style.md` §10): one row per step, one symbol per transition.

use std::collections::BTreeMap;

use anstyle::Style;
use notation_engine::{ExportChange, Planned};
use notation_model::{Incarnation, Record};
use notation_planner::{Change, Cycle, Goal, Note, Plan, Step, Subject, Summary, Transition, Why};

use crate::render::{
    cell,
    change::{self, Line},
    recorded, value,
};

/// A plan with what is needed to show it.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// What will be done.
    pub plan: &'a Plan,
    /// What is recorded: types of what leaves.
    pub records: &'a BTreeMap<Incarnation, Record>,
    /// Exports of the entry that change.
    pub exports: &'a [ExportChange],
    /// Remarks beside those of the plan.
    pub besides: &'a [Note],
    /// What it is for.
    pub purpose: Purpose,
}

/// What a plan is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To bring about what the program asks for.
    Deploy,
    /// To take everything down.
    Destroy,
}

impl Purpose {
    /// The command it is planned for.
    pub fn verb(self) -> &'static str {
        match self {
            Purpose::Deploy => "deploy",
            Purpose::Destroy => "destroy",
        }
    }
}

impl<'a> Shown<'a> {
    /// A plan as the engine made it.
    pub fn of(planned: &'a Planned, besides: &'a [Note], purpose: Purpose) -> Shown<'a> {
        Shown {
            plan: &planned.plan,
            records: &planned.prior.records,
            exports: &planned.exports,
            besides,
            purpose,
        }
    }

    /// Whether there is something to do, or may be.
    pub fn anything(&self) -> bool {
        let recorded = !self.plan.recorded.is_empty();
        anything(&self.plan.summary()) || recorded || !self.exports.is_empty()
    }

    /// Remarks for people: those of the plan, then the others.
    pub fn notes(&self) -> impl Iterator<Item = &'a Note> {
        self.plan.notes.iter().chain(self.besides)
    }
}

/// How to lay it out.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Columns at hand.
    pub width: usize,
    /// Field values below each row.
    pub details: Details,
}

/// How much to tell about fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Details {
    /// Rows only.
    None,
    /// Long values folded.
    Folded,
    /// Everything.
    Full,
}

struct Row {
    symbol: &'static str,
    style: Style,
    who: String,
    ty: String,
    action: &'static str,
    remarks: Vec<String>,
    changes: Vec<Change>,
}

/// Whether there is a step to take, or may be.
fn anything(summary: &Summary) -> bool {
    summary.create
        + summary.update
        + summary.revert
        + summary.replace
        + summary.delete
        + summary.unknown
        > 0
}

/// The last line of a plan with something to do.
fn summary_line(summary: &Summary) -> String {
    let mut parts = vec![
        format!("{} to create", summary.create),
        format!("{} to update", summary.update),
        format!("{} to delete", summary.delete),
    ];
    for (number, what) in [
        (summary.replace, "to replace"),
        (summary.revert, "to revert"),
    ] {
        if number > 0 {
            parts.push(format!("{number} {what}"));
        }
    }
    if summary.recorded > 0 {
        parts.push(format!("{} to record", summary.recorded));
    }
    if summary.unknown > 0 {
        parts.push(format!("{} decided while running", summary.unknown));
    }
    if summary.unchanged > 0 {
        parts.push(format!("{} unchanged", summary.unchanged));
    }
    format!("Plan: {}", parts.join(", "))
}

/// The whole plan.
pub fn render(shown: Shown<'_>, layout: Layout) -> String {
    let plan = shown.plan;
    let summary = plan.summary();
    let mut text = format!(
        "{}\n",
        cell::paint(cell::BOLD, &plan.deployment.to_string())
    );
    let rows: Vec<Row> = plan
        .steps
        .iter()
        .filter_map(|step| row(shown, step))
        .collect();
    if !rows.is_empty() {
        text.push('\n');
        write_rows(&mut text, &rows, layout);
    }
    if !plan.recorded.is_empty() {
        text.push_str("\n  recorded\n");
        for row in recorded::rows(&plan.recorded, layout.width.saturating_sub(4)) {
            let symbol = cell::paint(cell::UPDATE, "~");
            text.push_str(&format!("  {symbol} {row}\n"));
        }
    }
    if !shown.exports.is_empty() {
        text.push_str("\n  outputs\n");
        write_exports(&mut text, shown.exports, layout);
    }
    let notes = notes(shown, layout.width);
    if !notes.is_empty() {
        text.push('\n');
        text.push_str(&notes);
    }
    text.push('\n');
    if anything(&summary) {
        text.push_str(&cell::paint(cell::BOLD, &summary_line(&summary)));
    } else if shown.anything() {
        text.push_str(&cell::paint(cell::BOLD, &quiet_line(shown, &summary)));
    } else {
        text.push_str(&nothing(&summary));
    }
    text.push('\n');
    text
}

/// The last line of a plan without a step.
fn quiet_line(shown: Shown<'_>, summary: &Summary) -> String {
    let mut parts = Vec::new();
    if summary.recorded > 0 {
        let resources = cell::count(summary.recorded, "resource");
        parts.push(format!("{resources} to record"));
    }
    if !shown.exports.is_empty() {
        let outputs = cell::count(shown.exports.len(), "output");
        parts.push(format!("{outputs} to change"));
    }
    let unchanged = cell::count(summary.unchanged, "resource");
    parts.push(format!("{unchanged} unchanged"));
    format!("Plan: {}", parts.join(", "))
}

/// What is said when there is nothing to do.
fn nothing(summary: &Summary) -> String {
    match summary.unchanged {
        0 => "Nothing to do: nothing is deployed and nothing is asked for".into(),
        1 => "Nothing to do: 1 resource is as it should be".into(),
        many => format!("Nothing to do: {many} resources are as they should be"),
    }
}

fn notes(shown: Shown<'_>, width: usize) -> String {
    let mut text = String::new();
    for note in shown.notes() {
        let (word, style) = match note.code {
            "unavailable_while_replaced"
            | "waived_holder"
            | "unknown_type"
            | "left_in_place"
            | "drift"
            | "name_owned"
            | "name_taken_over"
            | "secret_in_clear"
            | "other_app" => ("warning", cell::UPDATE),
            _ => ("note", cell::SETTLE),
        };
        let room = width.saturating_sub(word.len() + 4);
        // A command stands on a line of its own, so that it can be copied.
        let mut lines = note.message.lines().flat_map(|line| cell::wrap(line, room));
        let first = lines.next().unwrap_or_default();
        text.push_str(&format!("  {}  {first}\n", cell::paint(style, word)));
        for line in lines {
            text.push_str(&format!("  {}  {line}\n", " ".repeat(word.len())));
        }
    }
    text
}

/// The type of the resource a step is about.
pub fn type_of(shown: Shown<'_>, step: &Step) -> Option<String> {
    let Subject::Incarnation(incarnation) = &step.key.subject else {
        return None;
    };
    let staying = shown
        .plan
        .intended
        .get(incarnation)
        .map(|intended| &intended.ty);
    // What is renamed is recorded under its new id by the plan alone.
    let restated = || {
        let mut restated = shown.plan.restated.iter();
        restated.find(|record| record.incarnation == *incarnation)
    };
    let leaving = || shown.records.get(incarnation).or_else(restated);
    let leaving = || leaving().map(|record| &record.ty);
    staying.or_else(leaving).map(ToString::to_string)
}

fn row(shown: Shown<'_>, step: &Step) -> Option<Row> {
    let (symbol, style, action) = match (step.forecast.transition, step.goal) {
        (Transition::None, _) => return None,
        (Transition::Create, Goal::Placeholder) => ("+", cell::CREATE, "create as placeholder"),
        (Transition::Create, _) => ("+", cell::CREATE, "create"),
        (Transition::Update, _) => ("~", cell::UPDATE, "update"),
        (Transition::Revert, _) => ("<", cell::UPDATE, "revert"),
        (Transition::Delete, _) => ("-", cell::DELETE, "delete"),
        (Transition::Unknown, _) => ("?", cell::UPDATE, "may update"),
        (Transition::Settle, _) => ("=", cell::SETTLE, "settle"),
    };
    if let Subject::Cycle(key) = &step.key.subject {
        let cycle = shown.plan.cycles.iter().find(|cycle| &cycle.key == key)?;
        return Some(settle_row(cycle, symbol, style, action));
    }
    let Subject::Incarnation(incarnation) = &step.key.subject else {
        return None;
    };
    Some(Row {
        symbol,
        style,
        who: incarnation.to_string(),
        ty: type_of(shown, step).unwrap_or_default(),
        action,
        remarks: remarks(shown, incarnation, step),
        changes: step.forecast.changes.clone(),
    })
}

fn settle_row(cycle: &Cycle, symbol: &'static str, style: Style, action: &'static str) -> Row {
    let members: Vec<_> = cycle.members.iter().map(ToString::to_string).collect();
    let mut remarks = vec![format!("at most {}", cell::passes(cycle.passes))];
    let again: Vec<_> = cycle.may_write.iter().map(ToString::to_string).collect();
    if !again.is_empty() {
        remarks.push(format!("may write {} again", again.join(", ")));
    }
    Row {
        symbol,
        style,
        who: members.join(", "),
        ty: String::new(),
        action,
        remarks,
        changes: Vec::new(),
    }
}

fn remarks(shown: Shown<'_>, incarnation: &Incarnation, step: &Step) -> Vec<String> {
    let mut remarks = Vec::new();
    if !step.forecast.leaves_out.is_empty() {
        remarks.push(format!(
            "leaves out {}",
            step.forecast.leaves_out.join(", ")
        ));
    }
    let reverts = step.forecast.transition == Transition::Revert;
    match &step.why {
        Why::New | Why::Changed | Why::Settles | Why::Unchanged => {}
        Why::Gone => remarks.push("was found gone".into()),
        Why::Drift => remarks.push("differs at the provider".into()),
        Why::Replaces { because } => remarks.push(format!("replaces: {}", because.join(", "))),
        Why::Replaced => remarks.push("replaced".into()),
        Why::Removed => match shown.purpose {
            Purpose::Deploy => remarks.push("not in the program".into()),
            // It is what was asked for.
            Purpose::Destroy => {}
        },
        Why::OpensLoop if reverts => remarks.push("opens a loop".into()),
        Why::LetsGo if reverts => remarks.push("lets go".into()),
        Why::InDoubt => remarks.push("in doubt: written in full".into()),
        // A create says "placeholder" already, and completing needs no reason.
        Why::OpensLoop | Why::LetsGo => {}
    }
    if step.goal == Goal::Complete
        && let Some(intended) = shown.plan.intended.get(incarnation)
        && !intended.may_replace.is_empty()
        && step.forecast.transition != Transition::Create
    {
        remarks.push(format!(
            "may replace, depending on {}",
            intended.may_replace.join(", ")
        ));
    }
    remarks
}

fn write_rows(text: &mut String, rows: &[Row], layout: Layout) {
    let widest = |of: &dyn Fn(&Row) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let who = widest(&|row| {
        if row.ty.is_empty() {
            0
        } else {
            cell::columns(&row.who)
        }
    })
    .min(28);
    let ty = widest(&|row| cell::columns(&row.ty)).min(24);
    let action = widest(&|row| row.action.len());
    for row in rows {
        let names = if row.ty.is_empty() {
            cell::pad(&cell::cut(&row.who, who + 3 + ty), who + 3 + ty)
        } else {
            let id = cell::pad(&cell::cut(&row.who, who), who);
            format!("{id}   {}", cell::pad(&cell::cut(&row.ty, ty), ty))
        };
        let head = format!(
            "  {} {names}   {}",
            cell::paint(row.style, row.symbol),
            cell::paint(row.style, row.action),
        );
        let pad = " ".repeat(action - row.action.len());
        let start = 4 + who + 3 + ty + 3 + action + 3;
        let remark = row.remarks.join("; ");
        if remark.is_empty() {
            text.push_str(&head);
            text.push('\n');
        } else if start + cell::columns(&remark) <= layout.width {
            text.push_str(&format!("{head}{pad}   {remark}\n"));
        } else {
            text.push_str(&format!("{head}\n"));
            for line in cell::wrap(&remark, layout.width.saturating_sub(6)) {
                text.push_str(&format!("      {line}\n"));
            }
        }
        if layout.details != Details::None {
            write_changes(text, row, layout);
        }
    }
}

fn write_changes(text: &mut String, row: &Row, layout: Layout) {
    let lines: Vec<Line> = row.changes.iter().flat_map(change::lines).collect();
    let path = lines
        .iter()
        .map(|line| cell::columns(&line.path))
        .max()
        .unwrap_or(0)
        .min(24);
    let room = layout.width.saturating_sub(6 + path + 2);
    for line in &lines {
        let shown = match layout.details {
            Details::Full => line.text(usize::MAX),
            Details::Folded | Details::None => line.text(room),
        };
        let path = cell::pad(&cell::cut(&line.path, 24), path);
        text.push_str(&format!(
            "      {}  {}\n",
            cell::paint(cell::FAINT, &path),
            shown.trim_end()
        ));
    }
}

fn write_exports(text: &mut String, exports: &[ExportChange], layout: Layout) {
    let name = |change: &ExportChange| cell::columns(&change.name);
    let widest = exports.iter().map(name).max().unwrap_or(0).min(28);
    let room = layout.width.saturating_sub(4 + widest + 3);
    for change in exports {
        let (symbol, style) = match (&change.before, &change.after) {
            (None, _) => ("+", cell::CREATE),
            (Some(_), None) => ("-", cell::DELETE),
            (Some(_), Some(_)) => ("~", cell::UPDATE),
        };
        let line = Line::between(change.before.as_ref(), change.after.as_ref());
        let shown = match (layout.details, &change.before, &change.after) {
            (Details::None, _, _) => String::new(),
            // The symbol says that it goes; what it was says which one.
            (_, Some(before), None) => value::folded(before, room),
            (Details::Full, _, _) => line.text(usize::MAX),
            (Details::Folded, _, _) => line.text(room),
        };
        let row = format!(
            "  {} {}   {shown}",
            cell::paint(style, symbol),
            cell::pad(&cell::cut(&change.name, widest), widest),
        );
        text.push_str(row.trim_end());
        text.push('\n');
    }
}
