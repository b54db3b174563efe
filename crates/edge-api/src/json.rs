//! I-JSON, judged on the raw bytes before anything is mapped onto types (host API §4.1).
//!
//! A parser of our own, because the usual one forgives what must be refused: a repeated member
//! name, negative zero, an overflowing number. Numbers keep their type, so that `3` never comes
//! back as `3.0`.

use serde_json::{Map, Number, Value};

/// Deepest nesting of containers.
pub const MAX_DEPTH: usize = 256;

/// Why bytes are not an I-JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct JsonError {
    /// What is wrong.
    pub what: &'static str,
    /// Where, counted from 0.
    pub offset: usize,
}

/// The one value in `bytes`.
///
/// Errors: `JsonError` with the place. Source: host API §4.1.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
        what: "no valid UTF-8",
        offset: error.valid_up_to(),
    })?;
    let mut parser = Parser {
        text,
        bytes,
        at: 0,
        depth: 0,
    };
    parser.space();
    let value = parser.value()?;
    parser.space();
    if parser.at < bytes.len() {
        return parser.fail("text after the value");
    }
    Ok(value)
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: usize,
}

impl Parser<'_> {
    fn fail<T>(&self, what: &'static str) -> Result<T, JsonError> {
        Err(JsonError {
            what,
            offset: self.at,
        })
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.peek() {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, JsonError> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(_) => self.fail("no JSON value"),
            None => self.fail("no value"),
        }
    }

    fn literal(&mut self, text: &str, value: Value) -> Result<Value, JsonError> {
        if !self.bytes[self.at..].starts_with(text.as_bytes()) {
            return self.fail("no JSON value");
        }
        self.at += text.len();
        Ok(value)
    }

    fn nested(
        &mut self,
        read: fn(&mut Self) -> Result<Value, JsonError>,
    ) -> Result<Value, JsonError> {
        if self.depth == MAX_DEPTH {
            return self.fail("nested too deeply");
        }
        self.depth += 1;
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn object(&mut self) -> Result<Value, JsonError> {
        let mut members = Map::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.fail("a member name is missing");
            }
            let name = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return self.fail("a colon is missing");
            }
            self.at += 1;
            self.space();
            let value = self.value()?;
            if members.insert(name, value).is_some() {
                return self.fail("a member name is repeated");
            }
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                _ => return self.fail("a comma or a closing brace is missing"),
            }
        }
    }

    fn array(&mut self) -> Result<Value, JsonError> {
        let mut items = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            items.push(self.value()?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return self.fail("a comma or a closing bracket is missing"),
            }
        }
    }

    fn string(&mut self) -> Result<String, JsonError> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= 0x20)
            {
                self.at += 1;
            }
            // Both ends sit on ASCII bytes, so the slice ends on character boundaries.
            text.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return self.fail("a control character in a string"),
                None => return self.fail("a string does not end"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, JsonError> {
        self.at += 1;
        let plain = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return self.fail("an unknown escape"),
        };
        self.at += 1;
        Ok(plain)
    }

    fn unicode(&mut self) -> Result<char, JsonError> {
        let first = self.unit()?;
        let code = match first {
            0xD800..=0xDBFF => {
                if self.peek() != Some(b'\\') || self.bytes.get(self.at + 1) != Some(&b'u') {
                    return self.fail("half of a surrogate pair");
                }
                self.at += 1;
                let second = self.unit()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return self.fail("half of a surrogate pair");
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            unit => unit,
        };
        match char::from_u32(code) {
            Some(character) => Ok(character),
            None => self.fail("half of a surrogate pair"),
        }
    }

    /// Four hex digits after the `u` that the parser stands on.
    fn unit(&mut self) -> Result<u32, JsonError> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|byte| char::from(byte).to_digit(16)) else {
                return self.fail("four hex digits are missing");
            };
            unit = unit * 16 + digit;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        let negative = self.peek() == Some(b'-');
        if negative {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail("a digit is missing"),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.some_digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.some_digits()?;
        }
        let text = &self.text[start..self.at];
        let float: f64 = text.parse().map_err(|_| JsonError {
            what: "no number",
            offset: start,
        })?;
        if !float.is_finite() {
            return self.fail("a number out of range");
        }
        if float == 0.0 && negative {
            return self.fail("negative zero");
        }
        if whole {
            if let Ok(integer) = text.parse::<i64>() {
                return Ok(Value::Number(integer.into()));
            }
            if let Ok(integer) = text.parse::<u64>() {
                return Ok(Value::Number(integer.into()));
            }
        }
        match Number::from_f64(float) {
            Some(number) => Ok(Value::Number(number)),
            None => self.fail("a number out of range"),
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.digits();
        if self.at == start {
            self.fail("a digit is missing")
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_what_i_json_forbids() {
        let deep = "[".repeat(257) + &"]".repeat(257);
        for text in [
            "",
            " ",
            "{} {}",
            "{}x",
            r#"{"a":1,"a":2}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"b":{"c":1,"c":1}}]"#,
            r#""\ud800""#,
            r#""\udc00\ud800""#,
            r#""\ud800\u0041""#,
            "\"\u{1}\"",
            r#""\x""#,
            r#""\u12""#,
            "01",
            "+1",
            ".5",
            "1.",
            "1e",
            "-",
            "1e400",
            "-0",
            "-0.0",
            "-0e5",
            "-1e-400",
            "True",
            "NaN",
            "nul",
            "{",
            "[1,]",
            r#"{"a"}"#,
            r#"{"a":1,}"#,
            "{a:1}",
            "\"open",
            "\u{feff}{}",
            &deep,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text:.40}");
        }
        assert!(parse(&[0xEF, 0xBB, 0xBF, 0x7B, 0x7D]).is_err());
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn keeps_what_was_written() {
        let text = r#"{"z":3,"a":3.5,"t":true,"n":null,"s":"\u00e9\ud83d\ude00\/\n","big":18446744073709551615}"#;
        let value = parse(text.as_bytes()).expect("valid");
        assert_eq!(
            value.to_string(),
            "{\"z\":3,\"a\":3.5,\"t\":true,\"n\":null,\"s\":\"é😀/\\n\",\"big\":18446744073709551615}"
        );
        let deep = "[".repeat(256) + &"]".repeat(256);
        assert!(parse(deep.as_bytes()).is_ok());
        assert!(parse(b" \t\r\n0 ").is_ok());
    }
}
