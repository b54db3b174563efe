//! How a program ended badly, as problems at places of the user's own source.

use std::ops::Range;

use notation_model::Origin;

use crate::{
    Limits, codes,
    declared::Program,
    locate, missing_method,
    problem::Problem,
    sandbox::{Failure, Thrown},
    source::Sources,
    too_early,
};

/// What browsers and Node.js have and a program has not, with the reason.
const NOT_AVAILABLE: &[(&str, &str)] = &[
    (
        "process",
        "a program cannot read its environment: only generated names differ between stages. Use `secret(\"NAME\")` for a value that is set per deployment",
    ),
    (
        "fetch",
        "a program cannot use the network: it describes what is to be made, and is evaluated on every command",
    ),
    ("XMLHttpRequest", "a program cannot use the network"),
    ("WebSocket", "a program cannot use the network"),
    (
        "setTimeout",
        "a program cannot wait: it describes what is to be made, and ends",
    ),
    (
        "setInterval",
        "a program cannot wait: it describes what is to be made, and ends",
    ),
    (
        "setImmediate",
        "a program cannot wait: it describes what is to be made, and ends",
    ),
    (
        "performance",
        "a program cannot read the clock: the same program must give the same graph",
    ),
    (
        "require",
        "a program is an ES module; write `import ... from \"...\"`",
    ),
    ("module", "a program is an ES module; write `export ...`"),
    ("exports", "a program is an ES module; write `export ...`"),
    (
        "__dirname",
        "a program has no files; paths in a config are relative to the project",
    ),
    (
        "__filename",
        "a program has no files; paths in a config are relative to the project",
    ),
    (
        "Buffer",
        "a program does not run in Node.js; texts and plain data are enough to describe infrastructure",
    ),
    ("Deno", "a program does not run in Deno"),
    ("Bun", "a program does not run in Bun"),
    (
        "Intl",
        "a program has no locale: the same program must give the same graph",
    ),
    ("window", "a program does not run in a browser"),
    ("document", "a program does not run in a browser"),
    (
        "URL",
        "a program has no web APIs; compose addresses with template strings",
    ),
    (
        "TextEncoder",
        "a program has no web APIs; texts and plain data are enough to describe infrastructure",
    ),
];

/// One failure as a problem.
pub(crate) fn explain(failure: &Failure, program: &Program<'_>, limits: &Limits) -> Problem {
    let Program {
        trace,
        sources,
        entry,
        ..
    } = *program;
    match failure {
        Failure::Thrown(thrown) => explain_thrown(thrown, program),
        Failure::OutOfTime { stack } => stopped_here(at_frames(
            Problem::new(
                codes::TIME_LIMIT,
                format!("the program was stopped after {} s", limits.time.as_secs_f32()),
            )
            .help("look for a loop that does not end; a program only describes what is to be made, which takes milliseconds"),
            trace.frames(stack, sources),
            sources,
            entry,
        )),
        Failure::OutOfMemory { stack } => at_frames(
            Problem::new(
                codes::MEMORY_LIMIT,
                format!(
                    "the program was stopped because it took more than {} MiB of memory",
                    limits.memory_bytes / 1024 / 1024
                ),
            )
            .help("look for a list or a text that grows without end"),
            trace.frames(stack, sources),
            sources,
            entry,
        ),
        Failure::NeverSettles => {
            let awaits = sources
                .get(entry)
                .map(|file| locate::top_level_awaits(&file))
                .unwrap_or_default();
            let mut awaits = awaits.into_iter();
            let problem = Problem::new(
                codes::NEVER_SETTLES,
                "the program waits for a promise that nothing can settle",
            )
            .help("nothing happens outside a program: there are no timers, files or network to wait for. Remove the `await`")
            .at(awaits.next().map(|place| place.with_label("waits here")));
            awaits.fold(problem, |problem, place| problem.also("or here", Some(place)))
        }
    }
}

fn stopped_here(problem: Problem) -> Problem {
    let place = problem.place.clone();
    problem.at(place.map(|place| place.with_label("it was here")))
}

fn explain_thrown(thrown: &Thrown, program: &Program<'_>) -> Problem {
    let Program { sources, entry, .. } = *program;
    let frames = program.trace.frames(&thrown.stack, sources);
    let missing = thrown.called.as_ref().and_then(|called| {
        let problem = missing_method::explain(called, program.types)?;
        let word = missing_method::word(called, frames.first()?, sources);
        Some((problem, word))
    });
    if let Some((problem, word)) = missing {
        return at_span(problem, frames, word, sources, entry);
    }
    if let Some(code) = &thrown.code
        && codes::ALL.contains(&code.as_str())
    {
        let problem = Problem::new(codes::known(code), &thrown.message);
        let problem = match &thrown.help {
            Some(help) => problem.help(help),
            None => problem,
        };
        let span = thrown.span.clone();
        return at_span(problem, frames, span, sources, entry);
    }
    if let Some((name, why)) = not_available(thrown) {
        let problem = Problem::new(
            codes::NOT_AVAILABLE,
            format!("`{name}` is not available to a program"),
        )
        .help(why);
        return at_frames(problem, frames, sources, entry);
    }
    if let Some(problem) = used_too_early(thrown, frames.first(), sources) {
        return at_frames(problem, frames, sources, entry);
    }
    let text = match (&thrown.name, thrown.message.as_str()) {
        (Some(name), "") => name.clone(),
        (Some(name), message) => format!("{name}: {message}"),
        (None, message) => message.to_owned(),
    };
    at_frames(
        Problem::new(codes::EXCEPTION, format!("the program threw {text}")),
        frames,
        sources,
        entry,
    )
}

fn not_available(thrown: &Thrown) -> Option<(&'static str, &'static str)> {
    if thrown.name.as_deref() != Some("ReferenceError") {
        return None;
    }
    let name = thrown.message.strip_suffix(" is not defined")?;
    let name = name.trim_matches('\'');
    NOT_AVAILABLE
        .iter()
        .find(|(known, _)| *known == name)
        .copied()
}

fn used_too_early(thrown: &Thrown, at: Option<&Origin>, sources: &Sources) -> Option<Problem> {
    if thrown.name.as_deref() != Some("ReferenceError") {
        return None;
    }
    thrown.message.strip_suffix(" is not initialized")?;
    too_early::explain(at?, sources)
}

/// At the innermost frame; the callers are told as well. A failure without a place is shown at
/// the start of the entry.
fn at_frames(problem: Problem, frames: Vec<Origin>, sources: &Sources, entry: &str) -> Problem {
    at_span(problem, frames, None, sources, entry)
}

/// The same, at these bytes of the innermost frame's file.
fn at_span(
    problem: Problem,
    frames: Vec<Origin>,
    span: Option<Range<usize>>,
    sources: &Sources,
    entry: &str,
) -> Problem {
    let mut frames = frames.into_iter();
    let Some(first) = frames.next() else {
        let start = Origin {
            file: entry.into(),
            line: 1,
            column: 1,
        };
        return problem.at(sources.place(&start));
    };
    let words = span.and_then(|span| Some(sources.get(&first.file)?.range(span)));
    let mut problem = problem.at(words.or_else(|| sources.place(&first)));
    let mut before = first;
    for caller in frames.take(8) {
        if caller != before {
            problem = problem.also("called from here", sources.place(&caller));
        }
        before = caller;
    }
    problem
}
