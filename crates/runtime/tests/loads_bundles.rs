//! The load check: one row per way a bundle can be wrong.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use notation_runtime::{Handler, InspectError, LoadError};
use support::{Host, SCRIPT, bundle};

const MAP: &str = "application/source-map+json";
const TEXT: &str = "text/plain";
const DATA: &str = "application/octet-stream";
const WASM: &str = "application/wasm";
const GOOD: &[u8] = b"export default { async fetch() {}, scheduled() {}, get queue() { return () => {} }, other() {} }";

type Modules<'a> = &'a [(&'a str, &'a str, &'a [u8])];

#[tokio::test(flavor = "multi_thread")]
async fn exports_are_read_from_the_bytes_and_every_failure_has_its_code() {
    let host = Host::start().await;
    let refused: &[(&str, &str, Modules)] = &[
        (
            "unsupported_media_type",
            "index.js",
            &[
                ("index.js", SCRIPT, GOOD),
                ("page.html", "text/html", b"<p>"),
            ],
        ),
        ("unsupported_media_type", "a.map", &[("a.map", MAP, b"{}")]),
        (
            "unsupported_media_type",
            "index.js",
            &[
                (
                    "index.js",
                    SCRIPT,
                    b"import './index.js.map'; export default {}",
                ),
                ("index.js.map", MAP, b"{}"),
            ],
        ),
        (
            "module_not_found",
            "worker.js",
            &[("index.js", SCRIPT, GOOD)],
        ),
        (
            "module_not_found",
            "index.js",
            &[("index.js", SCRIPT, b"import './none.js'; export default {}")],
        ),
        (
            "module_not_found",
            "index.js",
            &[("index.js", SCRIPT, b"import 'lodash'; export default {}")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[("index.js", SCRIPT, b"export default { fetch() {}")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[
                ("index.js", SCRIPT, GOOD),
                ("unused.js", SCRIPT, b"let let"),
            ],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[
                (
                    "index.js",
                    SCRIPT,
                    b"import { x } from './b.js'; export default {}",
                ),
                ("b.js", SCRIPT, b"export const y = 1"),
            ],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[(
                "index.js",
                SCRIPT,
                b"throw new Error('No such luck'); export default {}",
            )],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[(
                "index.js",
                SCRIPT,
                b"await new Promise(() => {}); export default {}",
            )],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[(
                "index.js",
                SCRIPT,
                b"await fetch('https://example.com'); export default {}",
            )],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[("index.js", SCRIPT, b"export const fetch = () => {}")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[("index.js", SCRIPT, b"export default null")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[("index.js", SCRIPT, b"export default class { fetch() {} }")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[("index.js", SCRIPT, b"export default function fetch() {}")],
        ),
        (
            "module_syntax_error",
            "index.js",
            &[
                (
                    "index.js",
                    SCRIPT,
                    b"import w from './a.wasm'; export default {}",
                ),
                ("a.wasm", WASM, b"nonsense"),
            ],
        ),
        ("module_syntax_error", "a.txt", &[("a.txt", TEXT, b"hello")]),
    ];
    for (code, main, modules) in refused {
        match host.runtime.inspect(&bundle(main, modules)).await {
            Err(InspectError::Refused(error)) => {
                assert_eq!(error.code(), *code, "{modules:?}: {error}")
            }
            other => panic!("{code} expected for {modules:?}, not {other:?}"),
        }
    }
    use Handler::{Fetch, Queue, Scheduled};
    let wasm: &[u8] = b"\0asm\x01\0\0\0";
    let loaded: &[(&[Handler], &str, Modules)] = &[
        (&[Fetch, Scheduled, Queue], "index.js", &[("index.js", SCRIPT, GOOD), ("index.js.map", MAP, b"{}")]),
        (&[Fetch], "lib/a.js", &[
            ("lib/a.js", SCRIPT, b"import t from '../t.txt'; import d from './d.bin'; import w from '../m.wasm'; import { f } from './b.js';
               if (t !== 'h\xc3\xa9' || !(d instanceof ArrayBuffer) || d.byteLength !== 2 || !(w instanceof WebAssembly.Module)) throw new Error('kinds');
               export default { fetch: f }"),
            ("lib/b.js", SCRIPT, b"export const f = () => {}"), ("t.txt", TEXT, "hé".as_bytes()),
            ("lib/d.bin", DATA, &[0, 255]), ("m.wasm", WASM, wasm),
        ]),
        (&[], "index.js", &[("index.js", SCRIPT, b"export default Object.create({ fetch() {} })")]),
        (&[Fetch], "index.js", &[("index.js", SCRIPT, b"const x = await Promise.resolve(1); export default { fetch() {}, queue: 3 }")]),
    ];
    for (handlers, main, modules) in loaded {
        let exports = host.runtime.inspect(&bundle(main, modules)).await;
        assert_eq!(
            exports
                .unwrap_or_else(|error| panic!("{error} for {modules:?}"))
                .handlers,
            *handlers
        );
    }
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_declared_handler_that_is_not_exported_is_refused_by_name() {
    let host = Host::start().await;
    let exports = host
        .runtime
        .inspect(&bundle(
            "i.js",
            &[("i.js", SCRIPT, b"export default { fetch() {} }")],
        ))
        .await;
    let missing = exports.unwrap().cover([Handler::Fetch, Handler::Scheduled]);
    assert_eq!(
        missing,
        Err(LoadError::HandlerNotExported {
            handler: "scheduled".into()
        })
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_syntax_error_says_where() {
    let host = Host::start().await;
    let broken = bundle(
        "src/index.js",
        &[("src/index.js", SCRIPT, b"\nexport default {\n  fetch( {\n}")],
    );
    let error = host.runtime.inspect(&broken).await.unwrap_err().to_string();
    assert!(
        error.contains("SyntaxError") && error.contains("src/index.js:4"),
        "{error}"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_throws_is_told_as_that_at_its_source() {
    let host = Host::start().await;
    // Line 2 of the module is line 3 of src/api.ts, from column 5 on.
    let map = br#"{"version":3,"sources":["src/api.ts"],"names":[],"mappings":";AAEI"}"#;
    let throwing = bundle(
        "index.js",
        &[
            (
                "index.js",
                SCRIPT,
                b"\nthrow new RangeError('no such plan');\nexport default { fetch() {} };",
            ),
            ("index.js.map", MAP, map),
        ],
    );
    let error = host.runtime.inspect(&throwing).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the module threw while it was loaded: RangeError: no such plan (at src/api.ts:3:5)"
    );
    host.runtime.shutdown().await;
}
