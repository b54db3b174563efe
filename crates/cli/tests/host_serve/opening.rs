//! What a host opens, and to whom.

use std::path::Path;
use tempfile::TempDir;

use crate::served::*;

#[test]
fn what_would_be_in_the_open_is_refused_before_anything_is_made() {
    let folder = TempDir::new().unwrap();
    let data = folder.path().join("host");
    let data = data.to_str().unwrap();
    let (cert, key, _) = certificate(folder.path());
    let adapter = adapter();
    let refused: [(&[&str], &str); 10] = [
        (&["--listen", "0.0.0.0:0"], "--tls-cert"),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--tls-cert",
                &cert,
                "--tls-key",
                &key,
                "--conformance",
                &adapter,
            ],
            "conformance",
        ),
        (&["--status", "0.0.0.0:0"], "ssh -L"),
        (&["--tls-cert", &cert], "--tls-key"),
        (&["--tls-key", &key], "--tls-cert"),
        (&["--max-requests", "0"], "at least 1"),
        (
            &["--public-origin", "https://edge.example/api"],
            "nothing behind the port",
        ),
        (
            &["--public-origin", "http://edge.example"],
            "must start with https://",
        ),
        (&["--endpoint-domain", "BAD_domain..x"], "workers.example"),
        (&["--ingress-scheme", "ftp"], "https"),
    ];
    for (flags, why) in refused {
        let mut all = vec!["host", "serve", "--data", data];
        all.extend(flags);
        run(&all).exits(2).says(why);
        assert!(!Path::new(data).exists(), "{flags:?}");
    }
    // A certificate belongs to a host on purpose, not to a project's own.
    run(&["host", "serve", "--tls-cert", &cert, "--tls-key", &key])
        .exits(2)
        .says("--data");
    run(&["host", "serve", "--data", data, "--artifacts", "ftp://x"])
        .exits(2)
        .says("s3://BUCKET/PREFIX");
    run(&["host", "serve", "--data", data, "--ingress", "0.0.0.0:0"])
        .exits(2)
        .says("loopback");
}

#[test]
fn a_certificate_opens_the_control_plane_beyond_loopback() {
    let folder = TempDir::new().unwrap();
    let (cert, key, pem) = certificate(folder.path());
    let flags = [
        "--listen",
        "0.0.0.0:0",
        "--tls-cert",
        &cert,
        "--tls-key",
        &key,
    ];
    let served = Served::with(&flags);
    let authority = served.authority("endpoint");
    assert!(
        served.said["endpoint"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    );
    let port = authority.rsplit(':').next().unwrap().to_owned();
    let origin = format!("https://localhost:{port}");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let text = runtime.block_on(async {
        let trusted = reqwest::Certificate::from_pem(pem.as_bytes()).unwrap();
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([trusted])
            .build()
            .unwrap();
        let target = format!("{origin}/.well-known/takoform/v1beta1");
        http.get(target).send().await.unwrap().text().await.unwrap()
    });
    assert!(text.contains(&format!("{origin}{API}")), "{text}");
    // Without TLS there is no talking to it.
    let plain = format!("127.0.0.1:{port}");
    let (status, _) = exchange(&plain, "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(status, 0);
    drop(served);
    let absent = folder.path().join("absent.pem");
    let data = folder.path().join("host");
    run(&[
        "host",
        "serve",
        "--data",
        data.to_str().unwrap(),
        "--tls-cert",
        &cert,
        "--tls-key",
        absent.to_str().unwrap(),
    ])
    .exits(1)
    .says("host::tls")
    .says("absent.pem");
}
