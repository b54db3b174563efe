//! `notation host logs`.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom},
    path::Path,
    time::Duration,
};

use serde_json::json;

use crate::{
    event_loop::block_on,
    exit::Exit,
    failure::{Failure, Outcome},
    interrupt::Interrupts,
    printer::{self, Printer},
    render::cell,
};

/// Prints the last lines, and what is added when that is wanted.
pub fn show(path: &Path, follow: bool, lines: usize, printer: &Printer) -> Outcome {
    let unreadable = |error: io::Error| {
        Failure::new(
            Exit::Fixable,
            "host::no_log",
            format!("{} cannot be read: {error}", path.display()),
        )
        .help("the log is made when the local host first starts: `notation host start`")
    };
    let mut file = File::open(path).map_err(unreadable)?;
    let mut last = std::collections::VecDeque::new();
    for line in BufReader::new(&file).lines() {
        last.push_back(line.map_err(unreadable)?);
        if last.len() > lines {
            last.pop_front();
        }
    }
    last.iter().for_each(|line| tell(line, printer));
    if !follow {
        return Ok(Exit::Done);
    }
    // Where reading ended, not where the file ends by now: nothing is lost in between.
    let at = file.stream_position().map_err(unreadable)?;
    block_on(follow_from(at, file, &unreadable, printer))
}

/// Prints what is added, until nobody reads it or the person has seen enough: an interrupt is the
/// usual way out.
async fn follow_from(
    mut at: u64,
    mut file: File,
    unreadable: &dyn Fn(io::Error) -> Failure,
    printer: &Printer,
) -> Outcome {
    let mut interrupts = Interrupts::listen();
    let mut rest = String::new();
    loop {
        // A log that was cut short starts anew.
        if file.metadata().map_err(unreadable)?.len() < at {
            at = file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
        }
        let mut bytes = Vec::new();
        at += file.read_to_end(&mut bytes).map_err(unreadable)? as u64;
        rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = rest.find('\n') {
            tell(&rest[..end], printer);
            rest.drain(..=end);
        }
        if printer::nobody_reads() {
            return Ok(Exit::Done);
        }
        tokio::select! {
            () = interrupts.next() => return Ok(Exit::Done),
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
    }
}

fn tell(line: &str, printer: &Printer) {
    if printer.json {
        printer.event("log", json!({ "line": line }));
        return;
    }
    match printer.reader() {
        // What is folded can still be told from what begins a line.
        Some(_) => {
            let width = printer.width.saturating_sub(2);
            let lines = cell::wrap(line, width);
            let lines: Vec<String> = lines
                .iter()
                .flat_map(|line| cell::pieces(line, width))
                .collect();
            printer.out(lines.join("\n  "));
        }
        None => printer.out(line),
    }
}
