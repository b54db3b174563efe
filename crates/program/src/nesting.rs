//! How deep a source nests, told without recursion: parser, bundler and evaluator recurse, and a
//! source that is deeper than their stacks would end the process.
//!
//! The text is split into tokens only as far as depth needs it. What a tree of syntax is deep with
//! is counted: brackets, and the links of a chain (`a.b.c`, `a + b + c`, `!!!a`, `if (a) if (b)`)
//! as long as nothing ends it. A guess about a `/` or a line end may be wrong by a few levels; the
//! limit is far from what people write and from what the stacks hold.

/// Deepest source that is read. The stacks hold more than twice that, also in a debug build.
pub(crate) const DEEPEST: usize = 1000;

/// The byte at which a source gets deeper than [`DEEPEST`].
pub(crate) fn too_deep(text: &str) -> Option<usize> {
    Scan {
        text: text.as_bytes(),
        at: 0,
        frames: vec![Frame::of(b'{', false)],
        depth: 1,
        last: Last::Start,
        line_ended: false,
    }
    .run()
}

/// An open bracket and the links of the chain that is being read in it.
struct Frame {
    /// The opening character; '`' for the code in a template.
    open: u8,
    /// The head of an `if` or a loop: what follows it goes on.
    head: bool,
    links: usize,
}

impl Frame {
    fn of(open: u8, head: bool) -> Frame {
        Frame {
            open,
            head,
            links: 0,
        }
    }
}

/// The token before, as far as it tells what the next one can be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// Nothing, or the end of a statement.
    Start,
    /// Something has to follow: an operator, a keyword, the head of an `if`.
    GoesOn,
    /// A keyword that has a head in parentheses.
    Head,
    /// A value may have ended.
    Value,
    /// A closing brace: of a value or of a block.
    Brace,
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    frames: Vec<Frame>,
    /// Brackets and links of all frames.
    depth: usize,
    last: Last,
    /// A line ended since the last token.
    line_ended: bool,
}

impl Scan<'_> {
    fn run(mut self) -> Option<usize> {
        while let Some(&byte) = self.text.get(self.at) {
            let start = self.at;
            match byte {
                b'\n' | b'\r' => {
                    self.line_ended = true;
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t' => {
                    self.at += 1;
                    continue;
                }
                b'/' if self.comment() => continue,
                b'/' if !matches!(self.last, Last::Value | Last::Brace) => {
                    self.regex();
                    self.last = Last::Value;
                }
                b'"' | b'\'' => {
                    self.may_begin_statement();
                    self.quoted(byte);
                    self.last = Last::Value;
                }
                b'`' => {
                    if matches!(self.last, Last::Value | Last::Brace) {
                        self.link();
                    }
                    self.at += 1;
                    self.template();
                }
                b'(' | b'[' | b'{' => {
                    if byte == b'{' {
                        self.may_begin_statement();
                    } else if matches!(self.last, Last::Value | Last::Brace) {
                        // A call, an access: one more on top of what is before it.
                        self.link();
                    }
                    self.open(byte, self.last == Last::Head);
                    self.at += 1;
                }
                b')' | b']' | b'}' => self.close(byte),
                b';' | b',' => {
                    self.end_chain();
                    self.last = Last::Start;
                    self.at += 1;
                }
                _ if is_word(byte) => self.word(),
                _ => {
                    self.link();
                    self.at += 1;
                    // `a!` and `a++` may end a value; that a line goes on after them is rare.
                    self.last = Last::GoesOn;
                }
            }
            self.line_ended = false;
            if self.depth > DEEPEST {
                return Some(start);
            }
        }
        None
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::of(b'{', false));
            self.depth += 1;
        }
        self.frames.last_mut().expect("one was put there")
    }

    fn link(&mut self) {
        self.frame().links += 1;
        self.depth += 1;
    }

    fn end_chain(&mut self) {
        let links = std::mem::take(&mut self.frame().links);
        self.depth -= links;
    }

    /// After a value, a word or a block on a new line begins a statement; after a block also on
    /// the same line.
    fn may_begin_statement(&mut self) {
        let begins = match self.last {
            Last::Value => self.line_ended,
            Last::Brace => true,
            Last::Start | Last::GoesOn | Last::Head => false,
        };
        if begins {
            self.end_chain();
        }
    }

    fn open(&mut self, open: u8, head: bool) {
        self.frames.push(Frame::of(open, head));
        self.depth += 1;
        self.last = Last::Start;
    }

    /// Closes up to the bracket that fits; one that fits none closes nothing.
    fn close(&mut self, byte: u8) {
        self.at += 1;
        let open = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        let fits = |frame: &Frame| frame.open == open || (byte == b'}' && frame.open == b'`');
        let Some(found) = self.frames.iter().skip(1).rposition(fits) else {
            self.last = Last::Value;
            return;
        };
        let closed: Vec<Frame> = self.frames.drain(found + 1..).collect();
        self.depth -= closed.iter().map(|frame| frame.links + 1).sum::<usize>();
        let Some(frame) = closed.first() else { return };
        if frame.open == b'`' {
            self.template();
            return;
        }
        self.last = match (byte, frame.head) {
            (b'}', _) => Last::Brace,
            (_, true) => Last::GoesOn,
            (_, false) => Last::Value,
        };
    }

    fn word(&mut self) {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|byte| is_word(*byte)) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        match word {
            b"if" | b"for" | b"while" | b"with" | b"switch" | b"catch" => {
                self.may_begin_statement();
                self.link();
                self.last = Last::Head;
            }
            // These go on with what is before them.
            b"else" | b"finally" | b"instanceof" | b"in" | b"of" | b"as" | b"satisfies"
            | b"extends" => {
                self.link();
                self.last = Last::GoesOn;
            }
            b"typeof" | b"void" | b"delete" | b"new" | b"await" | b"yield" | b"do" | b"return"
            | b"throw" | b"case" | b"keyof" | b"infer" | b"readonly" | b"async" | b"function"
            | b"class" | b"try" => {
                self.may_begin_statement();
                self.link();
                self.last = Last::GoesOn;
            }
            _ => {
                self.may_begin_statement();
                self.last = Last::Value;
            }
        }
    }

    /// Skips a comment, if one is here.
    fn comment(&mut self) -> bool {
        let rest = &self.text[self.at..];
        let end = match rest.get(1) {
            Some(b'/') => rest.iter().position(|byte| *byte == b'\n'),
            Some(b'*') => rest[2..]
                .windows(2)
                .position(|two| two == b"*/")
                .map(|at| at + 4),
            _ => return false,
        };
        let length = end.unwrap_or(rest.len());
        if rest[1] == b'*' && rest[..length].contains(&b'\n') {
            self.line_ended = true;
        }
        self.at += length;
        true
    }

    /// Skips a text; one without an end ends with its line.
    fn quoted(&mut self, quote: u8) {
        self.at += 1;
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' => return,
                byte if byte == quote => return,
                _ => {}
            }
        }
    }

    /// Skips a regular expression; one without an end is no expression.
    fn regex(&mut self) {
        let start = self.at;
        self.at += 1;
        let mut in_class = false;
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => return,
                b'\n' => break,
                _ => {}
            }
        }
        self.at = start + 1;
    }

    /// Skips the text of a template, to its end or to code in it.
    fn template(&mut self) {
        while let Some(&byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'`' => {
                    self.last = Last::Value;
                    return;
                }
                b'$' if self.text.get(self.at) == Some(&b'{') => {
                    self.at += 1;
                    self.open(b'`', false);
                    return;
                }
                _ => {}
            }
        }
    }
}

/// A letter, a digit, or a part of a character that is none of ours.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#' | b'@') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_nests_is_counted() {
        let deep: &[(&str, &str, &str)] = &[
            ("(", "1", ")"),
            ("[", "", "]"),
            ("{", "", "}"),
            ("{a:", "1", "}"),
            ("`${", "1", "}`"),
            ("f(", "", ")"),
            ("Array<", "x", ">"),
            ("function f(){", "", "}"),
            ("(class{m(){", "", "}})"),
            ("", "a", ".b"),
            ("", "a", "?.b"),
            ("", "f", "()"),
            ("", "f", "``"),
            ("", "a", " + a"),
            ("", "'a'", "\n + 'a'"),
            ("", "a", " +\n a"),
            ("!", "a", ""),
            ("- ", "a", ""),
            ("typeof ", "a", ""),
            ("await\n", "a", ""),
            ("new ", "A", ""),
            ("a => ", "a", ""),
            ("a ? 1 : ", "a", ""),
            ("if (a) ", "b", ""),
            ("if (a)\n", "b", ""),
            ("if (a) {} else ", "{}", ""),
            ("while (a)\n", "b", ""),
            ("l: ", "{}", ""),
            ("a = ", "1", ""),
            ("a extends b ? 1 : ", "2", ""),
        ];
        for (before, middle, after) in deep {
            let of = |levels: usize| {
                let (before, after) = (before.repeat(levels), after.repeat(levels));
                format!("const x = 1; {before}{middle}{after};")
            };
            assert!(too_deep(&of(1100)).is_some(), "{before}{middle}{after}");
            assert_eq!(too_deep(&of(100)), None, "{before}{middle}{after}");
        }
    }

    #[test]
    fn long_is_not_deep() {
        for line in [
            "const a = f(1) + [2][0];\n",
            "a.b(c => { return d; });\n",
            "a.b(c)\n",
            "const x = y\n",
            "if (a) { b() } else { c() }\n",
            "if (a) { b() }",
            "function f(a) { return a + 1 }",
            "class A extends B { m() { return /[(]/.test(`${a}`) } }\n",
            "// ((((\n",
            "/* [[[[ */ ",
            "const t = \"((((\" + '[[[[';\n",
            "const r = /((((/;\n",
            "x = a / b; y = (c) / d;\n",
            "export * from 'a'\n",
            "type A = { b: Array<string> }\n",
            "`((((`;\n",
            "f()\nif (a) return\n",
        ] {
            assert_eq!(too_deep(&line.repeat(5000)), None, "{line}");
        }
        let list = format!(
            "export const l = [{}];",
            "{ a: -1, b: [x.y] }, ".repeat(20_000)
        );
        assert_eq!(too_deep(&list), None);
        let fluent = format!("x{};", "\n  .then(a => { b(); c(); })".repeat(300));
        assert_eq!(too_deep(&fluent), None);
    }

    #[test]
    fn brackets_that_fit_nothing_are_no_trouble() {
        for text in [
            ")".repeat(5000),
            "(]".repeat(400),
            "}{".repeat(5000),
            "`${".into(),
            "'".into(),
            "/".into(),
            "\\".into(),
        ] {
            let _ = too_deep(&text);
        }
        assert_eq!(too_deep(&"}{".repeat(5000)), None);
    }
}
