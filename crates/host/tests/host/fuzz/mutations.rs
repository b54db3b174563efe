//! Ways to spoil a document or a request.

use fastrand::Rng;
use serde_json::{Value, json};

/// A value where something else was expected.
fn strange(dice: &mut Rng) -> Value {
    match dice.u8(0..16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(u64::MAX),
        4 => json!(1e308),
        5 => json!(0.1),
        6 => json!(""),
        7 => json!("x".repeat(dice.usize(1..10_000))),
        8 => json!("\u{0}\u{feff}\u{200b}é\u{10ffff}"),
        9 => json!("../../etc/passwd"),
        10 => json!([]),
        11 => json!({}),
        12 => json!([[[[]]]]),
        13 => json!({"apiVersion": 1, "kind": [], "name": {}}),
        14 => json!(vec![0; dice.usize(1..3000)]),
        _ => json!("sha256:0000000000000000000000000000000000000000000000000000000000000000"),
    }
}

/// Spoils one place of a document: another value, a member too many, one too few, a renamed one.
pub fn spoil(document: &mut Value, dice: &mut Rng) {
    match document {
        Value::Object(members) if !members.is_empty() && dice.u8(0..5) > 0 => {
            let names: Vec<String> = members.keys().cloned().collect();
            let name = &names[dice.usize(0..names.len())];
            match dice.u8(0..12) {
                0 => {
                    members.remove(name);
                }
                1 => {
                    members.insert(format!("x{}", dice.u8(0..9)), strange(dice));
                }
                2 => {
                    let value = members.remove(name).unwrap();
                    members.insert(name.to_uppercase(), value);
                }
                3 => {
                    members.insert(name.clone(), strange(dice));
                }
                _ => spoil(&mut members[name], dice),
            }
        }
        Value::Array(items) if !items.is_empty() && dice.u8(0..5) > 0 => {
            let at = dice.usize(0..items.len());
            match dice.u8(0..6) {
                0 => {
                    let copy = items[at].clone();
                    items.push(copy);
                }
                1 => {
                    items.remove(at);
                }
                _ => spoil(&mut items[at], dice),
            }
        }
        Value::String(text) if dice.bool() => {
            let at = text
                .char_indices()
                .map(|(at, _)| at)
                .nth(dice.usize(0..8))
                .unwrap_or(0);
            text.insert(
                at,
                ['/', ' ', '\u{0}', 'É', '.', '*', '%', '"'][dice.usize(0..8)],
            );
        }
        other => *other = strange(dice),
    }
}

/// Spoils the bytes of a text.
pub fn torn(text: &str, dice: &mut Rng) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    let at = dice.usize(0..bytes.len().max(1));
    match dice.u8(0..22) {
        0 => bytes.truncate(at),
        1 => bytes[at] = dice.u8(..),
        2 => bytes.insert(at, dice.u8(..)),
        3 => {
            bytes.remove(at);
        }
        4 => bytes = "[".repeat(dice.usize(200..100_000)).into_bytes(),
        5 => bytes = format!("{}{}", "{\"a\":".repeat(300), "}".repeat(300)).into_bytes(),
        6 => {
            let deep = dice.usize(200..300);
            bytes = text
                .replacen(
                    "\"spec\":{",
                    &format!(
                        "\"spec\":{{\"deep\":{}{},",
                        "[".repeat(deep),
                        "]".repeat(deep)
                    ),
                    1,
                )
                .into_bytes();
        }
        7 => bytes = text.replacen('{', "{\"kind\":1,", 1).into_bytes(),
        8 => {
            bytes = text
                .replacen("\"name\":", "\"n\\u0061me\":1,\"name\":", 1)
                .into_bytes()
        }
        9 => bytes = text.replacen(":{", ":1e400,\"x\":{", 1).into_bytes(),
        10 => {
            let digits = "9".repeat(dice.usize(20..5000));
            bytes = text
                .replacen("10000", &digits, 1)
                .replacen("600", &digits, 1)
                .into_bytes();
        }
        11 => bytes = text.replace('"', "\\u0022").into_bytes(),
        12 => bytes = text.replacen("\"w", "\"\\ud800", 1).into_bytes(),
        13 => {
            bytes = text
                .replacen(":{}", ":-0", 1)
                .replacen(":[]", ":-0.0", 1)
                .into_bytes()
        }
        14 => bytes = text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        15 => bytes = [b"\xef\xbb\xbf".as_slice(), &bytes].concat(),
        16 => bytes = text.chars().map(|c| c as u8 | 0x80).collect(),
        17 => bytes.extend_from_slice(text.as_bytes()),
        18 => {
            let length = dice.usize(0..4000);
            bytes = std::iter::repeat_with(|| dice.u8(..))
                .take(length)
                .collect();
        }
        19 => bytes = text.replacen(':', ":NaN,\"y\":", 1).into_bytes(),
        20 => bytes = text.replace(',', ",,").into_bytes(),
        _ => bytes = vec![b' '; dice.usize(0..100_000)],
    }
    bytes
}

/// Bytes for a bare connection: no HTTP, or HTTP that is wrong in its frame.
pub fn noise(dice: &mut Rng) -> Vec<u8> {
    let head = "POST /apis/forms.takoform.com/v1beta1/resources/validate HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t1p1\r\n";
    match dice.u8(0..10) {
        0 => std::iter::repeat_with(|| dice.u8(..)).take(500).collect(),
        1 => format!("{head}Content-Length: 10\r\n\r\nabc").into_bytes(),
        2 => format!("{head}Content-Length: -1\r\n\r\n").into_bytes(),
        3 => format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n").into_bytes(),
        4 => {
            format!("{head}Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\nabc\r\n0\r\n\r\n")
                .into_bytes()
        }
        5 => format!("{head}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd").into_bytes(),
        6 => format!("{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            .into_bytes(),
        7 => format!(
            "{head}X-Long: {}\r\n\r\n",
            "x".repeat(dice.usize(1..100_000))
        )
        .into_bytes(),
        8 => format!("GET /{} HTTP/9.9\r\n\r\n", "a".repeat(dice.usize(1..1000))).into_bytes(),
        _ => format!("{head}{}\r\n", "X-Many: 1\r\n".repeat(dice.usize(1..500))).into_bytes(),
    }
}
