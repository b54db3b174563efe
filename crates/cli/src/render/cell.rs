//! Small pieces of text: colours, padding, folding, quantities with units.

use anstyle::{AnsiColor, Style};

/// Green: something comes.
pub const CREATE: Style = AnsiColor::Green.on_default();
/// Yellow: something changes.
pub const UPDATE: Style = AnsiColor::Yellow.on_default();
/// Red: something goes, or went wrong.
pub const DELETE: Style = AnsiColor::Red.on_default();
/// Cyan: settling, waiting.
pub const SETTLE: Style = AnsiColor::Cyan.on_default();
/// Faint: details.
pub const FAINT: Style = Style::new().dimmed();
/// Bold: titles.
pub const BOLD: Style = Style::new().bold();

/// The text in a style. The stream strips it where colours are not wanted.
pub fn paint(style: Style, text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("{style}{text}{style:#}")
    }
}

/// Columns a text takes on a terminal.
pub fn columns(text: &str) -> usize {
    console::measure_text_width(text)
}

/// The text and as many spaces as are missing to `width` columns.
pub fn pad(text: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(text));
    format!("{text}{}", " ".repeat(missing))
}

/// The text, cut to `width` columns with an ellipsis when it is longer.
pub fn cut(text: &str, width: usize) -> String {
    console::truncate_str(text, width.max(2), "…").into_owned()
}

/// Rows with every column as wide as its widest cell, and the first row faint.
pub fn table<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let widest = |at: usize| rows.iter().map(|row| columns(&row[at])).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(widest);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(one, width)| pad(one, width));
        let line = cells.collect::<Vec<_>>().join("   ");
        let line = line.trim_end();
        let style = if number == 0 { FAINT } else { Style::new() };
        text.push_str(&paint(style, line));
        text.push('\n');
    }
    text
}

/// Words in lines of at most `width` columns; a longer word stands alone.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let current = lines.last_mut().expect("there is always a line");
        if current.is_empty() {
            current.push_str(word);
        } else if columns(current) + 1 + columns(word) <= width {
            current.push(' ');
            current.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// Pieces of at most `width` characters, for what has no place to break.
pub fn pieces(text: &str, width: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(width.max(1));
    pieces.map(|piece| piece.iter().collect()).collect()
}

/// A number of bytes with a unit.
pub fn bytes(count: u64) -> String {
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.1} kB", count as f64 / 1e3),
        1_000_000.. => format!("{:.1} MB", count as f64 / 1e6),
    }
}

/// A time span with a unit.
pub fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{:.1} s", ms as f64 / 1e3),
        60_000.. => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

/// `1 resource`, `2 resources`.
pub fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// `1 pass`, `3 passes`.
pub fn passes(number: u32) -> String {
    match number {
        1 => "1 pass".into(),
        number => format!("{number} passes"),
    }
}

/// Milliseconds since 1970 as RFC 3339.
pub fn time(ms: u64) -> String {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms)
        .map(|time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_has_the_asked_width() {
        assert_eq!(cut("abcdefgh", 5), "abcd…");
        assert_eq!(cut("abc", 5), "abc");
        assert_eq!(columns(&pad("ä", 4)), 4);
    }

    #[test]
    fn quantities_have_units() {
        assert_eq!(bytes(1_234), "1.2 kB");
        assert_eq!(took(65_000), "1 min 5 s");
        assert_eq!(count(2, "resource"), "2 resources");
    }
}
