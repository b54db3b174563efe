//! A terminal in memory: runs a command in it, types answers, reads what stands on the screen.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, reason = "it is test code outside test functions")]

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    num::NonZero,
    process::Command,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

/// Rows of the screen: enough for everything one command says.
const ROWS: u16 = 200;

/// What one command left on a terminal.
pub struct Screen {
    /// Exit status; `None` when a signal ended it.
    pub status: Option<i32>,
    /// What stood on it whenever an answer was typed.
    pub moments: Vec<String>,
    /// Whether it shows what is typed, as it did before.
    pub echoes: bool,
    parser: vt100::Parser,
    columns: u16,
}

/// Ctrl-C, as an answer: the terminal makes a signal of it.
pub const CTRL_C: &str = "\u{3}";

/// Runs a command at a terminal of so many columns. Whenever the screen shows the first text of
/// the next answer, its second text is typed.
pub fn at_terminal(command: Command, columns: u16, answers: &[(&str, &str)]) -> Screen {
    let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controller).unwrap();
    unlockpt(&controller).unwrap();
    let size = Winsize {
        ws_row: ROWS,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&controller, size).unwrap();
    // The command's own session, so that Ctrl-C typed here interrupts it.
    let mut own = Command::new("setsid");
    own.arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        own.current_dir(folder);
    }
    let mut command = own;
    let name = ptsname(&controller, Vec::new()).unwrap();
    let end = || -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(name.to_str().unwrap())
            .unwrap()
    };
    command.stdin(end()).stdout(end()).stderr(end());
    let mut child = command.spawn().unwrap();
    // The command keeps ends of its own open, and reading ends only when none is.
    drop(command);
    let mut controller = File::from(controller);
    let [high, wide] = [ROWS, columns].map(|count| NonZero::new(count).unwrap());
    let mut parser = vt100::Parser::new(high, wide, 0);
    let mut answers = answers.iter();
    let mut next = answers.next();
    let mut moments = Vec::new();
    let deadline = Instant::now() + Duration::from_secs(120);
    let mut bytes = [0; 4096];
    // On Linux the last end that closes makes reading fail.
    while let Ok(count @ 1..) = {
        if !speaks_until(&controller, deadline) {
            child.kill().unwrap();
            panic!("it hangs: {}", parser.screen().contents());
        }
        controller.read(&mut bytes)
    } {
        parser.process(&bytes[..count]);
        if let Some((shown, typed)) = next
            && parser.screen().contents().contains(shown)
        {
            moments.push(rows(parser.screen(), columns).join("\n"));
            controller.write_all(typed.as_bytes()).unwrap();
            next = answers.next();
        }
    }
    assert!(
        next.is_none(),
        "never asked: {}",
        parser.screen().contents()
    );
    let modes = tcgetattr(&controller).unwrap().local_modes;
    Screen {
        echoes: modes.contains(LocalModes::ECHO),
        status: child.wait().unwrap().code(),
        moments,
        parser,
        columns,
    }
}

/// Whether something can be read, or never will be, before that time.
fn speaks_until(terminal: &File, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left).unwrap();
    poll(&mut [PollFd::new(terminal, PollFlags::IN)], Some(&left)).unwrap() > 0
}

impl Screen {
    /// What stands on it, without colours.
    pub fn text(&self) -> String {
        let rows = rows(self.parser.screen(), self.columns);
        format!("{}\n", rows.join("\n").trim_end())
    }

    /// Whether a line was broken by the terminal itself: it was too long.
    pub fn overflows(&self) -> bool {
        (0..ROWS).any(|row| self.parser.screen().row_wrapped(row))
    }

    /// What stands on it, with the colours in words: `‹green›+‹›`.
    pub fn painted(&self) -> String {
        let screen = self.parser.screen();
        let mut text = String::new();
        for row in 0..ROWS {
            let mut line = String::new();
            let mut style = String::new();
            for column in 0..self.columns {
                let Some(cell) = screen.cell(row, column) else {
                    continue;
                };
                if cell.is_wide_continuation() {
                    continue;
                }
                let now = style_of(cell);
                let shown = if cell.has_contents() {
                    cell.contents()
                } else {
                    " "
                };
                // Blanks look the same in every colour.
                if now != style && shown != " " {
                    if !style.is_empty() {
                        line.push_str("‹›");
                    }
                    if !now.is_empty() {
                        line.push_str(&format!("‹{now}›"));
                    }
                    style = now;
                }
                line.push_str(shown);
            }
            if !style.is_empty() {
                let blank = line.len() - line.trim_end().len();
                line.truncate(line.len() - blank);
                line.push_str("‹›");
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        format!("{}\n", text.trim_end())
    }
}

/// Every row as it stands, also where the terminal went on in the next one.
fn rows(screen: &vt100::Screen, columns: u16) -> Vec<String> {
    let rows = screen.rows(0, columns);
    rows.map(|row| row.trim_end().to_owned()).collect()
}

fn style_of(cell: &vt100::Cell) -> String {
    let mut words = Vec::new();
    if cell.bold() {
        words.push("bold".to_owned());
    }
    if cell.dim() {
        words.push("faint".to_owned());
    }
    if cell.italic() {
        words.push("italic".to_owned());
    }
    if cell.underline() {
        words.push("underlined".to_owned());
    }
    match cell.fgcolor() {
        vt100::Color::Default => {}
        vt100::Color::Idx(number) => {
            let names = [
                "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
            ];
            let name = names.get(usize::from(number % 8)).filter(|_| number < 16);
            words.push(name.map_or(format!("colour {number}"), |name| (*name).to_owned()));
        }
        vt100::Color::Rgb(r, g, b) => words.push(format!("#{r:02x}{g:02x}{b:02x}")),
    }
    words.join(" ")
}
