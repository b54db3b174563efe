//! Reads the handlers of a module that is nothing but `export default { ... };`.
//!
//! A host without a JavaScript runtime must say "unknown" for everything else, so every doubt
//! ends the reading: computed keys, spreads, identifiers as values, slashes that are no comment.

use notation_edge::Exports;
use std::collections::BTreeSet;

/// What the default export of a module literal exports.
pub fn exports_of(source: &str) -> Exports {
    let mut reader = Reader { rest: source };
    reader.module().map_or(Exports::Unknown, Exports::Known)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn module(&mut self) -> Option<BTreeSet<String>> {
        self.word("export")?;
        self.word("default")?;
        self.token("{")?;
        let mut callable = BTreeSet::new();
        while self.token("}").is_none() {
            let (name, is_callable) = self.member()?;
            if is_callable {
                callable.insert(name);
            } else {
                callable.remove(&name);
            }
            if self.token(",").is_none() {
                self.token("}")?;
                break;
            }
        }
        while self.token(";").is_some() {}
        self.space()?;
        self.rest.is_empty().then_some(callable)
    }

    /// One member: its name and whether its value can be called.
    fn member(&mut self) -> Option<(String, bool)> {
        let mut name = self.name()?;
        self.space()?;
        if name == "async" && !self.rest.starts_with(['(', ':']) {
            name = self.name()?;
        }
        if self.token(":").is_some() {
            return Some((name, self.value()?));
        }
        self.function_rest()?;
        Some((name, true))
    }

    /// A function expression, or a literal that cannot be called.
    fn value(&mut self) -> Option<bool> {
        self.space()?;
        let word: &str = self
            .rest
            .split(|c: char| !c.is_ascii_alphanumeric())
            .next()?;
        match word {
            "async" | "function" => {
                if word == "async" {
                    self.word("async")?;
                }
                self.word("function")?;
                self.space()?;
                if !self.rest.starts_with('(') {
                    self.name()?;
                }
                self.function_rest()?;
                Some(true)
            }
            "true" | "false" | "null" | "undefined" => {
                self.rest = &self.rest[word.len()..];
                Some(false)
            }
            number if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.rest = &self.rest[number.len()..];
                Some(false)
            }
            "" if self.rest.starts_with(['"', '\'']) => {
                self.quoted()?;
                Some(false)
            }
            _ => None,
        }
    }

    fn function_rest(&mut self) -> Option<()> {
        self.balanced('(', ')')?;
        self.balanced('{', '}')
    }

    fn name(&mut self) -> Option<String> {
        self.space()?;
        if self.rest.starts_with(['"', '\'']) {
            return self.quoted();
        }
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let end = self
            .rest
            .find(|c: char| !part(c))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        let first = name.chars().next()?;
        if first.is_ascii_digit() || matches!(name, "get" | "set") {
            return None;
        }
        self.rest = rest;
        Some(name.to_owned())
    }

    fn quoted(&mut self) -> Option<String> {
        let quote = self.rest.chars().next()?;
        let inner = &self.rest[1..];
        let end = inner.find([quote, '\\', '\n'])?;
        if !inner[end..].starts_with(quote) {
            return None;
        }
        self.rest = &inner[end + 1..];
        Some(inner[..end].to_owned())
    }

    /// Skips a bracketed stretch, minding strings, templates and comments.
    fn balanced(&mut self, open: char, close: char) -> Option<()> {
        self.space()?;
        self.rest = self.rest.strip_prefix(open)?;
        let mut expected = vec![close];
        while let Some(&closing) = expected.last() {
            let next = self.rest.chars().next()?;
            match next {
                '"' | '\'' => {
                    self.string(next)?;
                    continue;
                }
                '`' => {
                    self.template()?;
                    continue;
                }
                '/' => {
                    let before = self.rest.len();
                    self.space()?;
                    if self.rest.len() == before {
                        return None;
                    }
                    continue;
                }
                '(' => expected.push(')'),
                '[' => expected.push(']'),
                '{' => expected.push('}'),
                ')' | ']' | '}' if next == closing => {
                    expected.pop();
                }
                ')' | ']' | '}' => return None,
                _ => {}
            }
            self.rest = &self.rest[next.len_utf8()..];
        }
        Some(())
    }

    fn string(&mut self, quote: char) -> Option<()> {
        let mut escaped = false;
        for (at, c) in self.rest.char_indices().skip(1) {
            match c {
                '\n' if !escaped => return None,
                '\\' if !escaped => escaped = true,
                c if c == quote && !escaped => {
                    self.rest = &self.rest[at + 1..];
                    return Some(());
                }
                _ => escaped = false,
            }
        }
        None
    }

    fn template(&mut self) -> Option<()> {
        self.rest = &self.rest[1..];
        loop {
            let at = self.rest.find(['`', '\\', '$'])?;
            self.rest = &self.rest[at..];
            if let Some(rest) = self.rest.strip_prefix('`') {
                self.rest = rest;
                return Some(());
            }
            if self.rest.starts_with("${") {
                self.rest = &self.rest[1..];
                self.balanced('{', '}')?;
            } else if let Some(rest) = self.rest.strip_prefix('\\') {
                let skipped = rest.chars().next()?;
                self.rest = &rest[skipped.len_utf8()..];
            } else {
                self.rest = &self.rest[1..];
            }
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        self.space()?;
        let rest = self.rest.strip_prefix(word)?;
        if rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$') {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    fn token(&mut self, token: &str) -> Option<()> {
        self.space()?;
        self.rest = self.rest.strip_prefix(token)?;
        Some(())
    }

    /// Skips white space and comments; `None` for a comment that does not end.
    fn space(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("//") {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            } else if let Some(rest) = self.rest.strip_prefix("/*") {
                self.rest = &rest[rest.find("*/")? + 2..];
            } else {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(source: &str) -> Vec<String> {
        match exports_of(source) {
            Exports::Known(names) => names.into_iter().collect(),
            other => panic!("{other:?} for {source}"),
        }
    }

    #[test]
    fn reads_object_literals() {
        assert_eq!(
            known("export default { async fetch() { return new Response(\"x\"); } };\n"),
            ["fetch"]
        );
        assert_eq!(
            known(
                "// c\nexport default {\n async fetch(request, env) { return `a${ {b: '}'}.b }c`; },\n async scheduled() {},\n queue() {},\n}"
            ),
            ["fetch", "queue", "scheduled"]
        );
        assert_eq!(
            known("export default { 'fetch': async function () {}, queue: null, n: 3 }"),
            ["fetch"]
        );
        assert_eq!(known("export default {}"), Vec::<String>::new());
    }

    #[test]
    fn doubts_everything_else() {
        for source in [
            "export default handler;",
            "export default { ...rest };",
            "export default { [name]() {} };",
            "export default { fetch: handler };",
            "export default { fetch };",
            "export default class { fetch() {} }",
            "export { a as default } from './a.js';",
            "export default { fetch() { return /}/.test(x); } };",
            "export default { get fetch() { return x; } };",
            "export default { fetch() {} }.other;",
            "const a = 1; export default { fetch() {} };",
            "export default { fetch() { ",
            "",
        ] {
            assert_eq!(exports_of(source), Exports::Unknown, "{source}");
        }
    }
}
