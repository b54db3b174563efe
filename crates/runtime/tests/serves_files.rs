//! Static assets before and after the worker.

#![allow(clippy::unwrap_used, reason = "a failed step of a test fails the test")]

mod support;

use http_body_util::{BodyExt, Full};
use hyper::Request;
use notation_runtime::{AssetFile, AssetsOrder, AssetsSpec, NotFound};
use support::Host;

const WORKER: &str = "export default { fetch(r) {
  const path = new URL(r.url).pathname;
  return new Response('worker ' + path, { status: path.startsWith('/api') ? 200 : 404 }) } }";

fn assets(host: &Host, order: AssetsOrder, not_found: NotFound) -> AssetsSpec {
    let file = |text: &'static str, media_type: &str| {
        host.blob(&format!("sha256:{text}"), text);
        AssetFile {
            digest: format!("sha256:{text}"),
            media_type: media_type.into(),
            size_bytes: text.len() as u64,
        }
    };
    let files = [
        ("index.html".into(), file("<main>", "text/html")),
        ("app/a.js".into(), file("0123456789", "text/javascript")),
        ("api".into(), file("a file", "text/plain")),
    ];
    AssetsSpec {
        files: files.into(),
        order,
        not_found,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn order_and_fallback_decide_between_file_and_worker() {
    use AssetsOrder::{AssetsFirst, WorkerFirst};
    use NotFound::{None, SinglePageApplication};
    let mut host = Host::start().await;
    for (name, order, not_found) in [
        ("first", AssetsFirst, None),
        ("spa", AssetsFirst, SinglePageApplication),
        ("last", WorkerFirst, None),
        ("lastspa", WorkerFirst, SinglePageApplication),
    ] {
        let spec = assets(&host, order, not_found);
        host.worker(name, WORKER).assets = Some(spec);
    }
    let spec = assets(&host, AssetsFirst, None);
    let files = host.worker("files", "export default {}");
    (files.assets, files.handlers) = (Some(spec), [].into());
    host.converge().await;
    for (worker, path, status, body) in [
        ("first", "/app/a.js", 200, "0123456789"),
        ("first", "/api", 200, "a file"),
        ("first", "/api/x", 200, "worker /api/x"),
        ("first", "/", 404, "worker /"),
        ("first", "/app/", 404, "worker /app/"),
        ("spa", "/", 200, "<main>"),
        ("spa", "/some/page", 200, "<main>"),
        ("spa", "/some/page/", 404, "worker /some/page/"),
        ("last", "/api", 200, "worker /api"),
        ("last", "/app/a.js?x", 200, "0123456789"),
        ("last", "/none", 404, "worker /none"),
        ("lastspa", "/none", 200, "<main>"),
        ("lastspa", "/api", 200, "worker /api"),
        ("files", "/index.html", 200, "<main>"),
        ("files", "/none", 404, "nothing answers at this path\n"),
    ] {
        assert_eq!(
            host.get(worker, path).await,
            (status, body.into()),
            "{worker} {path}"
        );
    }
    let post = Request::post("/app/a.js").body(Full::from("x")).unwrap();
    let answer = host.send("spa", post).await;
    assert_eq!(
        answer,
        Ok((404, "worker /app/a.js".into())),
        "files answer GET and HEAD only"
    );
    host.runtime.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_type_etag_ranges_and_conditions() {
    let mut host = Host::start().await;
    let spec = assets(&host, AssetsOrder::AssetsFirst, NotFound::None);
    host.worker("site", WORKER).assets = Some(spec);
    host.converge().await;
    let ask = async |method: &str, name: &str, value: &str| {
        let url = format!("{}app/a.js", host.address("site"));
        let request = Request::builder()
            .method(method)
            .uri(url)
            .header(name, value);
        let response = host
            .client
            .request(request.body(Full::default()).unwrap())
            .await
            .unwrap();
        let (head, body) = response.into_parts();
        let header = |name: &str| {
            head.headers
                .get(name)
                .map(|value| value.to_str().unwrap().to_owned())
        };
        let body = body.collect().await.unwrap().to_bytes();
        let seen = [
            header("content-type"),
            header("content-length"),
            header("content-range"),
        ];
        assert_eq!(header("etag").as_deref(), Some("\"sha256:0123456789\""));
        (
            head.status.as_u16(),
            seen,
            String::from_utf8(body.to_vec()).unwrap(),
        )
    };
    let some = |text: &str| Some(text.to_owned());
    let js = some("text/javascript");
    let whole = (200, [js.clone(), some("10"), None], "0123456789".to_owned());
    assert_eq!(ask("GET", "accept", "*/*").await, whole);
    assert_eq!(ask("GET", "range", "bytes=1-2,4-5").await, whole);
    assert_eq!(
        ask("HEAD", "accept", "*/*").await,
        (200, [js.clone(), some("10"), None], String::new())
    );
    let part = (
        206,
        [js.clone(), some("3"), some("bytes 7-9/10")],
        "789".to_owned(),
    );
    assert_eq!(ask("GET", "range", "bytes=7-").await, part);
    assert_eq!(ask("GET", "range", "bytes=10-").await.0, 416);
    let same = "W/\"sha256:0123456789\"";
    assert_eq!(
        ask("GET", "if-none-match", same).await,
        (304, [None, None, None], String::new())
    );
    assert_eq!(ask("GET", "if-none-match", "\"other\"").await, whole);
    host.runtime.shutdown().await;
}
