//! What worker processes print, as lines for people.

use serde::Deserialize;

use crate::plan::Uid;
use crate::process::Printed;

/// One message of a worker process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// Name of the worker.
    pub worker: String,
    /// Version that printed it.
    pub version: Uid,
    /// Who speaks.
    pub source: LogSource,
    /// How loud.
    pub level: LogLevel,
    /// The message; may hold line breaks.
    pub message: String,
}

/// Who printed a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogSource {
    /// Tenant code, through `console`.
    Code,
    /// An exception tenant code did not catch, or a rejected `waitUntil` task.
    Uncaught,
    /// The runtime or the host.
    Runtime,
}

/// Level of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// `console.debug`.
    Debug,
    /// `console.log` and `console.info`.
    Info,
    /// `console.warn`.
    Warn,
    /// `console.error`.
    Error,
}

/// Where lines go. Called from many tasks; must not block.
pub trait LogSink: Send + Sync + 'static {
    /// Takes one line.
    fn line(&self, line: LogLine);
}

/// Sends lines to `tracing` under the target `worker`.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracingLog;

impl LogSink for TracingLog {
    fn line(&self, line: LogLine) {
        let LogLine {
            worker,
            version,
            level,
            message,
            ..
        } = &line;
        match level {
            LogLevel::Debug => tracing::debug!(target: "worker", %worker, %version, "{message}"),
            LogLevel::Info => tracing::info!(target: "worker", %worker, %version, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "worker", %worker, %version, "{message}"),
            LogLevel::Error => tracing::error!(target: "worker", %worker, %version, "{message}"),
        }
    }
}

#[derive(Deserialize)]
struct Structured {
    timestamp: serde_json::Value,
    #[serde(default)]
    level: String,
    message: String,
}

/// Report of the entry module about something tenant code did not catch.
#[derive(Deserialize)]
struct Report {
    edge: String,
    name: String,
    message: String,
    stack: Option<String>,
}

/// Level, source and text of a printed line. Lines of tenant code have a number as
/// timestamp, lines of the runtime a text; code cannot choose.
pub(crate) fn read(printed: &Printed) -> (LogLevel, LogSource, String) {
    let (text, otherwise) = match printed {
        Printed::Out(text) => (text, LogLevel::Info),
        Printed::Err(text) => (text, LogLevel::Warn),
    };
    let Ok(line) = serde_json::from_str::<Structured>(text) else {
        return (otherwise, LogSource::Runtime, text.clone());
    };
    let level = match line.level.as_str() {
        "debug" | "trace" => LogLevel::Debug,
        "warn" | "warning" => LogLevel::Warn,
        "error" | "fatal" => LogLevel::Error,
        _ => LogLevel::Info,
    };
    if !line.timestamp.is_number() {
        return (level, LogSource::Runtime, line.message);
    }
    match serde_json::from_str::<Report>(&line.message) {
        Ok(Report {
            edge,
            name,
            message,
            stack,
        }) => {
            let told = format!("uncaught in {edge}: {name}: {message}");
            let place = stack
                .as_deref()
                .and_then(|stack| stack.split_once('\n'))
                .map(|(_, place)| place);
            // The host's own modules stand between a handler and its caller.
            let own = |line: &&str| !line.contains("~edge:");
            let text = place
                .into_iter()
                .flat_map(str::lines)
                .filter(own)
                .fold(told, |text, line| format!("{text}\n{line}"));
            (LogLevel::Error, LogSource::Uncaught, text)
        }
        Err(_) => (level, LogSource::Code, line.message),
    }
}
