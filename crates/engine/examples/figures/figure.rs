//! One figure, beside what it should be.

use std::fmt;

use serde_json::json;

/// What a figure should be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Target {
    /// Less than this.
    Under(f64),
    /// At most this.
    AtMost(f64),
    /// Exactly this.
    Exactly(f64),
    /// No number was set; it is shown to be watched.
    None,
}

impl Target {
    fn met(self, value: f64) -> Option<bool> {
        match self {
            Target::Under(limit) => Some(value < limit),
            Target::AtMost(limit) => Some(value <= limit),
            Target::Exactly(wanted) => Some(value == wanted),
            Target::None => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Under(limit) => f.pad(&format!("< {limit}")),
            Target::AtMost(limit) => f.pad(&format!("<= {limit}")),
            Target::Exactly(wanted) => f.pad(&format!("= {wanted}")),
            Target::None => f.pad(""),
        }
    }
}

/// What was measured.
#[derive(Debug, Clone)]
pub struct Figure {
    /// What it is about.
    pub name: String,
    /// How much.
    pub value: f64,
    /// Of what: `ms`, `MB`, `times`, `writes`, ...
    pub unit: &'static str,
    /// What it should be.
    pub target: Target,
    /// What else there is to say.
    pub note: String,
}

/// Prints figures as they come, and counts those that miss their target.
#[derive(Debug)]
pub struct Report {
    json: bool,
    met: usize,
    missed: usize,
}

impl Report {
    /// For people, or one JSON object a line.
    pub fn new(json: bool) -> Report {
        if !json {
            println!(
                "{:<52} {:>10} {:<7} {:>9}",
                "figure", "measured", "", "target"
            );
        }
        Report {
            json,
            met: 0,
            missed: 0,
        }
    }

    /// Prints one.
    pub fn put(&mut self, figure: &Figure) {
        let Figure {
            name,
            value,
            unit,
            target,
            note,
        } = figure;
        let met = target.met(*value);
        self.met += usize::from(met == Some(true));
        self.missed += usize::from(met == Some(false));
        if self.json {
            let line = json!({
                "figure": name,
                "value": value,
                "unit": unit,
                "target": target.to_string(),
                "met": met,
                "note": note,
            });
            println!("{line}");
            return;
        }
        let verdict = match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        let value = if value.fract() == 0.0 {
            format!("{value}")
        } else if *value < 100.0 {
            format!("{value:.2}")
        } else {
            format!("{value:.0}")
        };
        let line = format!("{name:<52} {value:>10} {unit:<7} {target:>9} {verdict:<6} {note}");
        println!("{}", line.trim_end());
    }

    /// Says how it went.
    pub fn end(&self) {
        if !self.json {
            println!("\n{} targets met, {} missed", self.met, self.missed);
        }
    }
}
