//! Static files of a version.
//!
//! Source: edge runtime contract, "Static assets"; host API, Appendix F for paths. A path of
//! a URL never reaches a file system: files are found by their exact manifest path.

use hyper::header::{self, HeaderMap};
use hyper::{Method, Response};

use crate::body::{self, OutBody};
use crate::plan::{AssetFile, AssetsSpec, Blobs, NotFound};

const MOST_PATH_CHARACTERS: usize = 240;

/// What the escaped path of a URL means.
#[derive(Debug, PartialEq, Eq)]
enum AssetPath {
    /// A manifest path.
    File(String),
    /// `/`, which never is a file.
    Root,
    /// Never a file, never the fallback.
    Refused,
}

/// The file this request gets from the asset stage; none is a miss.
pub(crate) fn stage<'a>(
    assets: &'a AssetsSpec,
    method: &Method,
    path: &str,
) -> Option<&'a AssetFile> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let fallback = match assets.not_found {
        NotFound::None => None,
        NotFound::SinglePageApplication => assets.files.get("index.html"),
    };
    match asset_path(path) {
        AssetPath::File(path) => assets.files.get(&path).or(fallback),
        AssetPath::Root => fallback,
        AssetPath::Refused => None,
    }
}

/// The answer with this file, as the request's conditions and range ask for it.
pub(crate) async fn answer(
    blobs: &dyn Blobs,
    file: &AssetFile,
    method: &Method,
    headers: &HeaderMap,
) -> std::io::Result<Response<OutBody>> {
    let etag = format!("\"{}\"", file.digest);
    let response = Response::builder()
        .header(header::ETAG, &etag)
        .header(header::ACCEPT_RANGES, "bytes");
    let built = |response: hyper::http::response::Builder, body| {
        response.body(body).map_err(std::io::Error::other)
    };
    if text(headers, header::IF_NONE_MATCH).is_some_and(|wanted| names(wanted, &etag)) {
        return built(response.status(304), body::empty());
    }
    let response = response.header(header::CONTENT_TYPE, &file.media_type);
    let range = text(headers, header::RANGE)
        .filter(|_| *method == Method::GET)
        .filter(|_| text(headers, header::IF_RANGE).is_none_or(|wanted| wanted == etag))
        .map_or(Range::Whole, |range| range_of(range, file.size_bytes));
    match range {
        Range::Whole if *method == Method::HEAD => built(
            response.header(header::CONTENT_LENGTH, file.size_bytes),
            body::empty(),
        ),
        Range::Whole => built(response, body::whole(blobs.read(&file.digest).await?)),
        Range::Part { first, last } => {
            let bytes = blobs.read(&file.digest).await?;
            let part = usize::try_from(first)
                .ok()
                .zip(usize::try_from(last + 1).ok())
                .filter(|(_, end)| *end <= bytes.len())
                .map(|(start, end)| bytes.slice(start..end))
                .ok_or(std::io::ErrorKind::UnexpectedEof)?;
            let shown = format!("bytes {first}-{last}/{}", file.size_bytes);
            built(
                response.status(206).header(header::CONTENT_RANGE, shown),
                body::whole(part),
            )
        }
        Range::Unsatisfiable => {
            let shown = format!("bytes */{}", file.size_bytes);
            built(
                response.status(416).header(header::CONTENT_RANGE, shown),
                body::empty(),
            )
        }
    }
}

fn asset_path(target: &str) -> AssetPath {
    let raw = target.split(['?', '#']).next().unwrap_or_default();
    let lower = raw.to_ascii_lowercase();
    let Some(rest) = raw.strip_prefix('/') else {
        return AssetPath::Refused;
    };
    if raw.contains('\\') || lower.contains("%2f") || lower.contains("%5c") {
        return AssetPath::Refused;
    }
    match decoded(rest) {
        Some(path) if path.is_empty() => AssetPath::Root,
        Some(path) if is_manifest_path(&path) => AssetPath::File(path),
        Some(_) | None => AssetPath::Refused,
    }
}

/// Percent-decoded once; none when an escape is broken or the result is not UTF-8.
pub(crate) fn decoded(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: u8| char::from(byte).to_digit(16);
            let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// The artifact path grammar. It admits no controls, no non-characters, no empty segment
/// and no segment that begins with a dot.
fn is_manifest_path(path: &str) -> bool {
    let segment = |segment: &str| {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        segment.bytes().next().is_some_and(word)
            && segment
                .bytes()
                .all(|byte| word(byte) || byte == b'.' || byte == b'-')
    };
    path.len() <= MOST_PATH_CHARACTERS && path.split('/').all(segment)
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn names(wanted: &str, etag: &str) -> bool {
    let same = |tag: &str| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    wanted.split(',').any(|tag| same(tag.trim()))
}

#[derive(Debug, PartialEq, Eq)]
enum Range {
    Whole,
    Part { first: u64, last: u64 },
    Unsatisfiable,
}

/// A single byte range; anything else is as if nothing was asked (RFC 9110 §14.2).
fn range_of(text: &str, size: u64) -> Range {
    let parsed = text
        .strip_prefix("bytes=")
        .filter(|set| !set.contains(','))
        .and_then(|set| set.split_once('-'));
    let number = |text: &str| text.parse::<u64>().ok();
    let (first, last) = match parsed {
        Some(("", suffix)) => match number(suffix) {
            Some(0) => return Range::Unsatisfiable,
            Some(length) => (size.saturating_sub(length), None),
            None => return Range::Whole,
        },
        Some((first, "")) => match number(first) {
            Some(first) => (first, None),
            None => return Range::Whole,
        },
        Some((first, last)) => match (number(first), number(last)) {
            (Some(first), Some(last)) if first <= last => (first, Some(last)),
            _ => return Range::Whole,
        },
        None => return Range::Whole,
    };
    if first >= size {
        return Range::Unsatisfiable;
    }
    Range::Part {
        first,
        last: last.unwrap_or(size - 1).min(size - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_urls_become_manifest_paths() {
        let file = |path: &str| AssetPath::File(path.into());
        for (url, expected) in [
            ("/", AssetPath::Root),
            ("/?q", AssetPath::Root),
            ("/app/index.html", file("app/index.html")),
            ("/app/index.html?cache=1", file("app/index.html")),
            ("/app/index.html#section", file("app/index.html")),
            ("/app/%69ndex.html", file("app/index.html")),
            ("/_next/a-b_c.1.js", file("_next/a-b_c.1.js")),
        ] {
            assert_eq!(asset_path(url), expected, "{url}");
        }
        for url in [
            "app/index.html",
            "/app%2Findex.html",
            "/app%5Cindex.html",
            "/app\\index.html",
            "/app//index.html",
            "/app/",
            "/app/./index.html",
            "/app/../index.html",
            "/app/%2e%2e/x",
            "/app/%00.html",
            "/app/%EF%BF%BE.html",
            "/app/%FF.html",
            "/%",
            "/%4",
            "/%zz",
            "/.env",
            "/a b",
        ] {
            assert_eq!(asset_path(url), AssetPath::Refused, "{url}");
        }
    }

    #[test]
    fn ranges_are_cut_to_the_file() {
        assert_eq!(range_of("bytes=2-4", 10), Range::Part { first: 2, last: 4 });
        assert_eq!(
            range_of("bytes=8-99", 10),
            Range::Part { first: 8, last: 9 }
        );
        assert_eq!(range_of("bytes=4-", 10), Range::Part { first: 4, last: 9 });
        assert_eq!(range_of("bytes=-3", 10), Range::Part { first: 7, last: 9 });
        assert_eq!(range_of("bytes=-30", 10), Range::Part { first: 0, last: 9 });
        assert_eq!(range_of("bytes=10-", 10), Range::Unsatisfiable);
        assert_eq!(range_of("bytes=-0", 10), Range::Unsatisfiable);
        assert_eq!(range_of("bytes=0-", 0), Range::Unsatisfiable);
        for odd in [
            "bytes=4-2",
            "bytes=a-b",
            "bytes=1-2,4-5",
            "lines=1-2",
            "bytes=--1",
        ] {
            assert_eq!(range_of(odd, 10), Range::Whole, "{odd}");
        }
    }
}
