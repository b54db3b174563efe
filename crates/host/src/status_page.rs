//! A page that says what is there and why it is not ready; plain HTML, no script.

use crate::host::Host;
use crate::snapshot::Snapshot;
use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use notation_edge::{Resource, World};
use std::fmt::Write;

const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\">\
<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Notation host</title>\
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:1rem auto;padding:0 1rem;\
color:#1a1a1a;background:#fff}article{border:1px solid #ccc;border-radius:.5rem;padding:.5rem 1rem;\
margin:.75rem 0;overflow-wrap:anywhere}h3{margin:.25rem 0}.no{color:#8a1c00}.yes{color:#0a5c2b}\
@media(prefers-color-scheme:dark){body{color:#eee;background:#111}.no{color:#ff9b82}\
.yes{color:#7fe0a5}}</style>";

/// The status page and the metrics.
pub fn router(host: Host) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/metrics", get(metrics))
        .with_state(host)
}

async fn page(State(host): State<Host>) -> Html<String> {
    let snapshot = host.worlds().borrow().clone();
    Html(render(&snapshot))
}

async fn metrics(State(host): State<Host>) -> impl IntoResponse {
    let mut text = host.inner.metrics.text();
    text.push_str("# TYPE notation_host_resources gauge\n");
    for (tenant, at) in &host.worlds().borrow().tenants {
        let tenant = tenant.replace(['\\', '"', '\n'], "_");
        line(
            &mut text,
            format_args!(
                "notation_host_resources{{tenant=\"{tenant}\"}} {}\n",
                at.world.len()
            ),
        );
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}

fn line(text: &mut String, args: std::fmt::Arguments<'_>) {
    text.write_fmt(args)
        .expect("writing to a String does not fail");
}

fn render(snapshot: &Snapshot) -> String {
    let mut html = String::from(HEAD);
    html.push_str("<h1>Notation host</h1>");
    if snapshot
        .tenants
        .values()
        .all(|tenant| tenant.world.is_empty())
    {
        html.push_str("<p>Nothing is deployed yet.</p>");
    }
    for (tenant, at) in &snapshot.tenants {
        if at.world.is_empty() {
            continue;
        }
        line(&mut html, format_args!("<h2>{}</h2>", escaped(tenant)));
        for worker in at.world.workers() {
            write_worker(&mut html, &at.world, worker);
        }
        write_not_ready(&mut html, &at.world);
        line(
            &mut html,
            format_args!("<p>{} resources in all.</p>", at.world.len()),
        );
    }
    html
}

fn write_worker(html: &mut String, world: &World, worker: &Resource) {
    line(
        html,
        format_args!(
            "<article><h3>{} <small>{}</small></h3>{}",
            escaped(&worker.key.name),
            escaped(&worker.key.space),
            condition(worker)
        ),
    );
    for (version, weight) in world.weights(&worker.uid) {
        let name = world
            .get(&version)
            .map_or_else(String::new, |it| escaped(&it.key.name));
        line(
            html,
            format_args!(
                "<div>{}.{:02} % {name}</div>",
                weight.0 / 100,
                weight.0 % 100
            ),
        );
    }
    for endpoint in world
        .endpoints()
        .iter()
        .filter(|it| it.worker == worker.uid)
    {
        line(
            html,
            format_args!("<div>{}</div>", escaped(&endpoint.hostname)),
        );
    }
    html.push_str("</article>");
}

fn write_not_ready(html: &mut String, world: &World) {
    let not_ready = |it: &&std::sync::Arc<Resource>| {
        !it.condition.is_ready() && it.kind() != Some(notation_edge::EdgeKind::ModuleWorker)
    };
    for resource in world.resources().filter(not_ready) {
        let key = escaped(&resource.key.to_string());
        line(
            html,
            format_args!("<article><h3>{key}</h3>{}</article>", condition(resource)),
        );
    }
}

fn condition(resource: &Resource) -> String {
    let condition = &resource.condition;
    let class = if condition.is_ready() { "yes" } else { "no" };
    let reason = condition.reason.as_str();
    match condition
        .message
        .as_ref()
        .or(condition.host_reason.as_ref())
    {
        Some(text) => format!("<div class=\"{class}\">{reason}: {}</div>", escaped(text)),
        None => format!("<div class=\"{class}\">{reason}</div>"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
