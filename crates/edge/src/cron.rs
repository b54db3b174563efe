//! Cron expressions: grammar and meaning (host API Appendix C).

/// A parsed five-field expression. Times are UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
}

/// Why a text is no cron expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cron field {field}: {what}")]
pub struct CronError {
    /// Name of the field.
    pub field: &'static str,
    /// What is wrong with it.
    pub what: &'static str,
}

/// One minute in UTC, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instant {
    /// 0-59.
    pub minute: u8,
    /// 0-23.
    pub hour: u8,
    /// 1-31.
    pub day: u8,
    /// 1-12.
    pub month: u8,
    /// 0-6, 0 is Sunday.
    pub weekday: u8,
}

const FIELDS: [(&str, u8, u8); 5] = [
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of month", 1, 31),
    ("month", 1, 12),
    ("day of week", 0, 6),
];

impl Cron {
    /// Parses an expression: five fields with exactly one space between them.
    pub fn parse(text: &str) -> Result<Cron, CronError> {
        let parts: Vec<&str> = text.split(' ').collect();
        if parts.len() != 5 || text.len() > 64 {
            return Err(CronError {
                field: "count",
                what: "five fields with single spaces are needed",
            });
        }
        let mut sets = [0u64; 5];
        for (index, (field, low, high)) in FIELDS.into_iter().enumerate() {
            for term in parts[index].split(',') {
                sets[index] |= values(term, low, high).map_err(|what| CronError { field, what })?;
            }
        }
        let [minute, hour, day, month, weekday] = sets;
        Ok(Cron {
            minute,
            hour,
            day,
            month,
            weekday,
        })
    }

    /// Whether the expression fires in this minute. When both day fields are restricted, either
    /// suffices.
    pub fn matches(&self, at: &Instant) -> bool {
        let has = |set: u64, value: u8| set & (1 << value) != 0;
        let day = has(self.day, at.day);
        let weekday = has(self.weekday, at.weekday);
        let restricted = |set: u64, low: u8, high: u8| set != span(low, high, 1);
        let on_day = if restricted(self.day, 1, 31) && restricted(self.weekday, 0, 6) {
            day || weekday
        } else {
            day && weekday
        };
        on_day
            && has(self.minute, at.minute)
            && has(self.hour, at.hour)
            && has(self.month, at.month)
    }
}

fn values(term: &str, low: u8, high: u8) -> Result<u64, &'static str> {
    let (range, step) = match term.split_once('/') {
        Some((range, step)) => (range, Some(step)),
        None => (term, None),
    };
    let (first, last) = if range == "*" {
        (low, high)
    } else if let Some((first, last)) = range.split_once('-') {
        (number(first)?, number(last)?)
    } else if step.is_some() {
        return Err("a step needs a range");
    } else {
        let value = number(range)?;
        (value, value)
    };
    if first < low || last > high {
        return Err("a value is out of range");
    }
    if first > last {
        return Err("a range is inverted");
    }
    let step = match step {
        None => 1,
        Some(step) => number(step)?,
    };
    if step < 1 || (step > high - low) {
        return Err("a step is out of range");
    }
    Ok(span(first, last, step))
}

fn span(first: u8, last: u8, step: u8) -> u64 {
    (first..=last)
        .step_by(usize::from(step))
        .fold(0, |set, value| set | (1 << value))
}

fn number(text: &str) -> Result<u8, &'static str> {
    let digits = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits {
        text.parse().map_err(|_| "no number")
    } else {
        Err("one or two digits are needed")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_is_exact() {
        for good in [
            "* * * * *",
            "0 * * * *",
            "*/5 * * * *",
            "0,30 * * * *",
            "0 9-17 * * 1-5",
            "0 0 1 1 *",
            "0-59/15 0-23/2 1-31 1-12 0-6",
            "05 03 * * *",
            "*/59 * * * *",
            "0 0 * * *",
            "1,1,1 * * * *",
        ] {
            assert!(Cron::parse(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "0 24 * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "0 0 32 * *",
            "60 0 * * *",
            "0 0 0 * *",
            "0 0 * 13 *",
            "*/60 * * * *",
            "0 0 * * 7",
            "5/10 * * * *",
            "0 0 * *",
            "0 0 * * * *",
            "0  0 * * *",
            " 0 0 * * *",
            "0\t0 * * *",
            "0,,3 * * * *",
            "0, * * * *",
            "MON * * * *",
            "@daily",
            "0 0 L * *",
            "? * * * *",
            "-1 * * * *",
            "+1 * * * *",
            "100 * * * *",
            "*-5 * * * *",
        ] {
            assert!(Cron::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn either_day_field_suffices_when_both_are_restricted() {
        let at = |day, weekday| Instant {
            minute: 0,
            hour: 0,
            day,
            month: 5,
            weekday,
        };
        let both = Cron::parse("0 0 1 * 1").unwrap();
        assert!(both.matches(&at(1, 3)) && both.matches(&at(9, 1)) && !both.matches(&at(9, 3)));
        let one = Cron::parse("0 0 1-31 * 1").unwrap();
        assert!(one.matches(&at(9, 1)) && !one.matches(&at(1, 3)));
        assert!(Cron::parse("*/15 * * * *").unwrap().matches(&Instant {
            minute: 45,
            ..at(2, 2)
        }));
    }
}
