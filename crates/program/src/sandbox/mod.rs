//! Runs a bundled program: in this process, without files, network, clock or chance, within
//! limits of time, memory and stack.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Function, Module, Object, Persistent, Promise,
    Runtime, Value, context::intrinsic, promise::PromiseState,
};

use crate::{
    Limits,
    bundle::Bundle,
    raw::{Raw, RawCall},
    trace::MODULE,
};

/// Set from outside when the time is over.
pub(crate) type Stop = Arc<AtomicBool>;

/// What an evaluation left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What was declared, up to the end or to where it stopped.
    pub raw: Raw,
    /// How it ended; empty when it ended well.
    pub failures: Vec<Failure>,
}

/// Why a program did not end well.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It threw, or a promise of it was rejected and nobody looked.
    Thrown(Box<Thrown>),
    /// The time was over at this place.
    OutOfTime { stack: String },
    /// The memory was used up at this place.
    OutOfMemory { stack: String },
    /// It waits for a promise that nothing can settle any more.
    NeverSettles,
}

/// A thrown value, as data.
#[derive(Debug, Default)]
pub(crate) struct Thrown {
    /// Code of one of our own refusals.
    pub code: Option<String>,
    pub help: Option<String>,
    /// Name of the error's class.
    pub name: Option<String>,
    pub message: String,
    pub stack: String,
    /// The words it is about, in bytes of the file of the innermost frame.
    pub span: Option<Range<usize>>,
    /// The property of a resource that was called.
    pub called: Option<RawCall>,
}

/// The evaluator itself failed: our bug, or the machine's.
#[derive(Debug, thiserror::Error)]
#[error("the evaluator could not be used: {0}")]
pub(crate) struct Broken(String);

/// Everything of the language but the clock and weak references.
type Intrinsics = (
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
);

const PRELUDE: &str = include_str!("prelude.js");
/// The prelude's handle in the global object.
const HANDLE: &str = "\0notation";

/// Evaluates a bundle to its end.
///
/// Errors: only when the evaluator itself cannot be used.
pub(crate) fn run(bundle: &Bundle, limits: &Limits, stop: Stop) -> Result<Ran, Broken> {
    let broken = |error: rquickjs::Error| Broken(error.to_string());
    let runtime = Runtime::new().map_err(broken)?;
    runtime.set_memory_limit(limits.memory_bytes);
    runtime.set_max_stack_size(limits.stack_bytes);
    // A program lives for milliseconds: looking for garbage early is most of its time.
    runtime.set_gc_threshold(limits.memory_bytes / 4);
    let out_of_time = Arc::clone(&stop);
    runtime.set_interrupt_handler(Some(Box::new(move || stop.load(Ordering::Relaxed))));
    runtime.set_host_promise_rejection_tracker(Some(Box::new(
        |ctx, promise, reason, is_handled| {
            // Bookkeeping in the prelude cannot fail but for memory, which shows elsewhere.
            let _ = handle(&ctx).and_then(|handle| {
                handle
                    .get::<_, Function>("rejected")?
                    .call::<_, ()>((promise, reason, is_handled))
            });
        },
    )));
    let context = Context::custom::<Intrinsics>(&runtime).map_err(broken)?;
    context.with(|ctx| {
        ctx.eval::<(), _>(PRELUDE)
            .catch(&ctx)
            .map_err(|error| Broken(error.to_string()))
    })?;
    let started = context.with(|ctx| start(&ctx, bundle, &out_of_time));
    let started = match started {
        // What waited for a promise goes on; one job that is stopped stops the program.
        Ok(started) => jobs(&runtime, &out_of_time).map(|()| started),
        Err(failure) => Err(failure),
    };
    Ok(context.with(|ctx| end(&ctx, started, &out_of_time)))
}

fn handle<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    ctx.globals().get(HANDLE)
}

/// A program that ran to its end or to its first `await`.
struct Started {
    exports: Persistent<Object<'static>>,
    promise: Persistent<Promise<'static>>,
}

fn start(ctx: &Ctx<'_>, bundle: &Bundle, out_of_time: &Stop) -> Result<Started, Failure> {
    Module::declare(ctx.clone(), MODULE, bundle.code.as_str())
        .and_then(Module::eval)
        .and_then(|(module, promise)| {
            Ok(Started {
                exports: Persistent::save(ctx, module.namespace()?),
                promise: Persistent::save(ctx, promise),
            })
        })
        .catch(ctx)
        .map_err(|error| failure(ctx, error, out_of_time))
}

/// Runs what waits, until nothing does.
fn jobs(runtime: &Runtime, out_of_time: &Stop) -> Result<(), Failure> {
    loop {
        match runtime.execute_pending_job() {
            Ok(true) if out_of_time.load(Ordering::Relaxed) => {
                return Err(Failure::OutOfTime {
                    stack: String::new(),
                });
            }
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(stopped) => {
                return stopped.0.with(|ctx| {
                    let error = CaughtError::from_error(&ctx, rquickjs::Error::Exception);
                    Err(failure(&ctx, error, out_of_time))
                });
            }
        }
    }
}

fn end(ctx: &Ctx<'_>, started: Result<Started, Failure>, out_of_time: &Stop) -> Ran {
    let (exports, mut failures) = match started.map(|started| settled(ctx, started, out_of_time)) {
        Ok(Ok(exports)) => (
            Some(exports),
            unhandled(ctx)
                .into_iter()
                .map(|thrown| Failure::Thrown(Box::new(thrown)))
                .collect(),
        ),
        Ok(Err(failure)) | Err(failure) => (None, vec![failure]),
    };
    // What is handed over takes time and memory as well.
    match finish(ctx, exports.filter(|_| failures.is_empty())).catch(ctx) {
        Ok(raw) => Ran { raw, failures },
        Err(error) => {
            if failures.is_empty() {
                failures.push(failure(ctx, error, out_of_time));
            }
            Ran {
                raw: Raw::default(),
                failures,
            }
        }
    }
}

/// The exports of a program that came to its end.
fn settled<'js>(
    ctx: &Ctx<'js>,
    started: Started,
    out_of_time: &Stop,
) -> Result<Object<'js>, Failure> {
    let broken = |error: rquickjs::Error| {
        Failure::Thrown(Box::new(Thrown {
            message: error.to_string(),
            ..Thrown::default()
        }))
    };
    let exports = started.exports.restore(ctx).map_err(broken)?;
    let promise = started.promise.restore(ctx).map_err(broken)?;
    match promise.state() {
        PromiseState::Resolved => Ok(exports),
        PromiseState::Pending => Err(Failure::NeverSettles),
        PromiseState::Rejected => match promise.result::<()>().map(|result| result.catch(ctx)) {
            Some(Err(error)) => Err(failure(ctx, error, out_of_time)),
            Some(Ok(())) | None => Ok(exports),
        },
    }
}

fn finish<'js>(ctx: &Ctx<'js>, exports: Option<Object<'js>>) -> rquickjs::Result<Raw> {
    let exports = match exports {
        Some(exports) => exports,
        None => Object::new(ctx.clone())?,
    };
    let text: String = handle(ctx)?
        .get::<_, Function>("finish")?
        .call((exports,))?;
    // All that well-formed JSON can have and a text here cannot.
    serde_json::from_str(&text).map_err(|_| {
        rquickjs::Exception::throw_type(
            ctx,
            "a text of the program has half a character in it (a lone surrogate such as \\ud800); write the whole character",
        )
    })
}

fn unhandled(ctx: &Ctx<'_>) -> Vec<Thrown> {
    let reasons = handle(ctx).and_then(|handle| {
        handle
            .get::<_, Function>("unhandled")?
            .call::<_, Vec<Value>>(())
    });
    reasons
        .unwrap_or_default()
        .into_iter()
        .map(|reason| thrown(ctx, &reason))
        .collect()
}

fn failure<'js>(ctx: &Ctx<'js>, error: CaughtError<'js>, out_of_time: &Stop) -> Failure {
    let thrown = match error {
        CaughtError::Exception(exception) => thrown(ctx, exception.as_value()),
        CaughtError::Value(value) => thrown(ctx, &value),
        CaughtError::Error(error) => Thrown {
            message: error.to_string(),
            ..Thrown::default()
        },
    };
    let internal = thrown.name.as_deref() == Some("InternalError");
    if out_of_time.load(Ordering::Relaxed) {
        Failure::OutOfTime {
            stack: thrown.stack,
        }
    } else if internal && thrown.message == "out of memory" || thrown.message == "null" {
        // With no memory left for an error object, the engine throws null.
        Failure::OutOfMemory {
            stack: thrown.stack,
        }
    } else {
        Failure::Thrown(Box::new(thrown))
    }
}

fn thrown<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Thrown {
    let Some(object) = value.as_object() else {
        let text = plain(ctx, value).unwrap_or_else(|| "a value that has no text".into());
        return Thrown {
            message: text,
            ..Thrown::default()
        };
    };
    let text = |key: &str| object.get::<_, String>(key).ok();
    let message = object
        .get::<_, Value>("message")
        .ok()
        .and_then(|message| plain(ctx, &message))
        .unwrap_or_default();
    let offset = |key: &str| object.get::<_, u32>(key).ok().map(|at| at as usize);
    Thrown {
        code: text("code"),
        help: text("help"),
        name: text("name"),
        message,
        stack: text("stack").unwrap_or_default(),
        span: offset("from").zip(offset("to")).map(|(from, to)| from..to),
        called: text("called").and_then(|called| serde_json::from_str(&called).ok()),
    }
}

/// A value as text, with references spelt out.
fn plain<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Option<String> {
    let text = handle(ctx).and_then(|handle| {
        handle
            .get::<_, Function>("plain")?
            .call::<_, String>((value.clone(),))
    });
    if text.is_err() {
        ctx.catch();
    }
    text.ok()
}
