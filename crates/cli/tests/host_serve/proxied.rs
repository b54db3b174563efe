//! Workers behind a proxy that speaks TLS, through the binary.

use crate::served::{Served, exchange};

/// What a deployed Worker says of `request.url`, asked through the ingress of a host with `flags`.
fn seen(flags: &[&str]) -> String {
    let mut all = vec!["--listen", "127.0.0.1:0", "--ingress", "127.0.0.1:0"];
    all.extend(flags);
    let served = Served::with(&all);
    let name = served.worker(
        "export default { fetch(request: Request) { return new Response(\"seen \" + request.url); } };\n",
    );
    // As a proxy passes it on; what the client says of the scheme is not believed.
    let request = format!(
        "GET /path?q HTTP/1.1\r\nHost: {name}\r\nX-Forwarded-Proto: gopher\r\nConnection: close\r\n\r\n"
    );
    let (status, text) = exchange(&served.authority("ingress"), &request);
    assert_eq!(status, 200, "{text}");
    let at = text.find("seen ").unwrap_or_else(|| panic!("{text}"));
    let seen = text[at + "seen ".len()..].lines().next().unwrap();
    seen.replace(&name, "NAME")
}

#[test]
fn workers_see_the_scheme_that_clients_of_the_proxy_use() {
    assert_eq!(seen(&["--ingress-scheme", "https"]), "https://NAME/path?q");
    assert_eq!(seen(&[]), "http://NAME/path?q");
}
