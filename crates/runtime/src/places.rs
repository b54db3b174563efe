//! Places of bundled code in the files it was made of: a bundle may carry source maps
//! (`edge-runtime.md` §2, auxiliary modules), and what people read names their own lines.

use std::fmt::Write as _;
use std::sync::OnceLock;

use bytes::Bytes;
use sourcemap::SourceMap;

use crate::bundle::BundleModule;

/// Maps larger than this are not read: they come from tenants.
const MOST_MAP_BYTES: usize = 16 << 20;
/// Ends the name of a module's map.
const SUFFIX: &str = ".map";
const MEDIA_TYPE: &str = "application/source-map+json";

/// The source maps of one bundle; each is read when the first place is asked for.
#[derive(Debug, Default)]
pub(crate) struct Places(Vec<Mapped>);

#[derive(Debug)]
struct Mapped {
    /// The module that the map is about.
    module: String,
    bytes: Bytes,
    map: OnceLock<Option<SourceMap>>,
}

impl Places {
    /// The maps among the modules of a bundle.
    pub(crate) fn of(modules: &[BundleModule]) -> Places {
        let maps = modules
            .iter()
            .filter(|module| module.media_type == MEDIA_TYPE);
        Places(
            maps.filter_map(|map| {
                Some(Mapped {
                    module: map.name.strip_suffix(SUFFIX)?.to_owned(),
                    bytes: map.bytes.clone(),
                    map: OnceLock::new(),
                })
            })
            .collect(),
        )
    }

    /// The text with every `module:line:column` that a map knows told in its source file.
    pub(crate) fn tell(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, mapped| mapped.tell(&text))
    }
}

impl Mapped {
    fn tell(&self, text: &str) -> String {
        let head = format!("{}:", self.module);
        let mut told = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(&head) {
            let (before, from) = rest.split_at(at);
            told.push_str(before);
            let after = &from[head.len()..];
            // `other-index.js:1:1` is another module.
            let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "/-_.".contains(c));
            let place = begins
                .then(|| position(after))
                .flatten()
                .and_then(|(line, column, length)| Some((self.source(line, column)?, length)));
            match place {
                Some((place, length)) => {
                    told.push_str(&place);
                    rest = &after[length..];
                }
                None => {
                    told.push_str(&head);
                    rest = after;
                }
            }
        }
        told + rest
    }

    /// `file:line:column` of a place of the module; all from 1.
    fn source(&self, line: u32, column: u32) -> Option<String> {
        let map = self.map.get_or_init(|| {
            let readable = self.bytes.len() <= MOST_MAP_BYTES;
            readable
                .then(|| SourceMap::from_slice(&self.bytes).ok())
                .flatten()
        });
        let token = map
            .as_ref()?
            .lookup_token(line.checked_sub(1)?, column.checked_sub(1)?)?;
        let file = token.get_source()?;
        // A log line must not be made to look like two.
        if file.chars().any(char::is_control) {
            return None;
        }
        let mut place = String::new();
        let _ = write!(
            place,
            "{file}:{}:{}",
            token.get_src_line() + 1,
            token.get_src_col() + 1
        );
        Some(place)
    }
}

/// Line, column, and how many bytes they take: `3:14)` is `(3, 14, 4)`.
fn position(text: &str) -> Option<(u32, u32, usize)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let line = digits(text);
    let column = digits(text.get(line..)?.strip_prefix(':')?);
    let end = line + 1 + column;
    Some((
        text[..line].parse().ok()?,
        text[line + 1..end].parse().ok()?,
        end,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(module: &str) -> Places {
        // Line 2 of the module is line 3 of src/api.ts, column 5 there is column 9 here.
        let map = r#"{"version":3,"sources":["src/api.ts"],"names":[],"mappings":";AAEI,QAAQ"}"#;
        Places::of(&[BundleModule {
            name: format!("{module}.map"),
            media_type: MEDIA_TYPE.into(),
            bytes: Bytes::from_static(map.as_bytes()),
        }])
    }

    #[test]
    fn places_that_a_map_knows_are_told_in_the_source() {
        let places = places("index.js");
        let told = places.tell("Error: x\n    at fetch (index.js:2:3)\n    at index.js:2:9");
        assert_eq!(
            told,
            "Error: x\n    at fetch (src/api.ts:3:5)\n    at src/api.ts:3:13"
        );
    }

    #[test]
    fn everything_else_stays() {
        let places = places("index.js");
        for text in [
            "at (index.js:1:1)",
            "at (other/index.js:2:3)",
            "at (index.js:x)",
            "index.js: a text",
            "index.js:99999999999:1",
            "",
        ] {
            assert_eq!(places.tell(text), text);
        }
    }
}
