//! The status page as HTML.

use super::view::{Operation, Part, Standing, Tenant, Worker};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use notation_edge::Condition;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// Operations shown per tenant.
const OPERATIONS: usize = 20;

const STYLE: &str = "
:root{color-scheme:light dark;--ink:#1b1d21;--soft:#5c626d;--line:#dcdfe4;--page:#f6f7f9;--card:#fff;
--ok:#0b6b3a;--bad:#9a2b00;--bar:#2f6fd0}
@media(prefers-color-scheme:dark){:root{--ink:#e8eaee;--soft:#9aa1ad;--line:#33373f;--page:#121417;
--card:#1b1e23;--ok:#6fd69c;--bad:#ff9d7a;--bar:#6aa1f5}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;font:16px/1.45 system-ui,sans-serif;color:var(--ink);
background:var(--page);overflow-wrap:anywhere}
h1{font-size:1.35rem;margin:.25rem 0 1rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
h3{font-size:1.05rem;margin:0}h4{font-size:.8rem;margin:1.25rem 0 .25rem;color:var(--soft);font-weight:600}
a{color:inherit;text-underline-offset:.2em}small,.soft{color:var(--soft);font-size:.85rem;font-weight:400}
article{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem;margin:.75rem 0}
header{display:flex;gap:.75rem;align-items:baseline;justify-content:space-between}
ul{list-style:none;margin:0;padding:0}li{padding:.4rem 0;border-top:1px solid var(--line)}
li:first-child{border-top:0}
.row{display:flex;gap:.75rem;align-items:baseline}.row>:first-child{flex:1 1 0}.row>*{flex:none}
.yes{color:var(--ok)}.no{color:var(--bad)}.why{margin:.15rem 0 0;color:var(--bad);font-size:.9rem}
.share{font-variant-numeric:tabular-nums}
.bar{height:.3rem;border-radius:.15rem;background:var(--line);margin-top:.3rem;overflow:hidden}
.bar>i{display:block;height:100%;background:var(--bar)}
";

fn document(title: &str, body: &Markup) -> String {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    }
    .into_string()
}

/// All tenants.
pub fn everything(tenants: &[Tenant]) -> String {
    let body = html! {
        h1 { "Notation host" }
        @if tenants.is_empty() {
            p { "Nothing is deployed yet." }
        }
        @for tenant in tenants {
            h2 { a href=(address(tenant)) { (tenant.name) } " " small { (summary(tenant)) } }
            (sections(tenant))
        }
    };
    document("Notation host", &body)
}

/// One tenant; nothing of any other.
pub fn one(tenant: &Tenant) -> String {
    let body = html! {
        h1 { (tenant.name) " " small { (summary(tenant)) } }
        (sections(tenant))
        p { a href="/" { "all tenants" } }
    };
    document(&format!("{} - Notation host", tenant.name), &body)
}

fn address(tenant: &Tenant) -> String {
    format!(
        "/tenants/{}",
        utf8_percent_encode(&tenant.name, NON_ALPHANUMERIC)
    )
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn summary(tenant: &Tenant) -> Markup {
    let pending = tenant.operations.iter();
    let pending = pending
        .filter(|it| it.standing == Standing::Pending)
        .count();
    html! {
        (counted(tenant.workers.len(), "worker")) ", "
        (counted(tenant.count(), "resource"))
        @match tenant.not_ready() {
            0 => { ", " span.yes { "all ready" } }
            count => { ", " span.no { (count) " not ready" } }
        }
        @if pending > 0 { ", " (counted(pending, "operation")) " pending" }
    }
}

fn sections(tenant: &Tenant) -> Markup {
    html! {
        @for worker in &tenant.workers { (worker_card(worker)) }
        @if !tenant.others.is_empty() {
            article {
                h3 { "Bundles, data and queues" }
                ul { @for part in &tenant.others { li { (part_line(part, true)) } } }
            }
        }
        @if !tenant.operations.is_empty() {
            article {
                h3 { "Operations" }
                ul {
                    @for operation in tenant.operations.iter().take(OPERATIONS) {
                        li { (operation_line(operation)) }
                    }
                }
                @if tenant.operations.len() > OPERATIONS {
                    small { "and " (tenant.operations.len() - OPERATIONS) " older ones" }
                }
            }
        }
    }
}

fn worker_card(worker: &Worker) -> Markup {
    html! {
        article {
            header {
                h3 { (worker.name) " " small { "in " (worker.space) } }
                (ready(&worker.condition))
            }
            (why(&worker.condition))
            @if !worker.versions.is_empty() {
                h4 { "Versions" }
                ul { @for (weight, version) in &worker.versions { li { (version_line(*weight, version)) } } }
            }
            @if !worker.parts.is_empty() {
                h4 { "Deployment and attachments" }
                ul { @for part in &worker.parts { li { (part_line(part, false)) } } }
            }
        }
    }
}

fn version_line(weight: Option<u16>, version: &Part) -> Markup {
    html! {
        div.row {
            span { (version.name) }
            @match weight {
                Some(weight) => { span.share { (percent(weight)) } }
                None => { span.soft { "no traffic" } }
            }
            (ready(&version.condition))
        }
        @if let Some(weight) = weight {
            div.bar { i style=(format!("width:{}%", f32::from(weight) / 100.0)) {} }
        }
        (why(&version.condition))
    }
}

/// Basis points as percent, without zeroes nobody needs.
fn percent(weight: u16) -> String {
    match weight % 100 {
        0 => format!("{} %", weight / 100),
        rest => format!("{}.{rest:02} %", weight / 100),
    }
}

fn part_line(part: &Part, with_space: bool) -> Markup {
    html! {
        div.row {
            span {
                @match (&part.label, &part.link) {
                    (Some(_), Some(link)) => { a href=(link) { (link) } }
                    (Some(label), None) => { (label) }
                    (None, _) => { (part.name) }
                }
                " " small { (part.kind) @if part.label.is_some() { " " (part.name) } @if with_space { " in " (part.space) } }
            }
            (ready(&part.condition))
        }
        (why(&part.condition))
    }
}

fn operation_line(operation: &Operation) -> Markup {
    html! {
        div.row {
            span { (operation.what) " " small { (operation.created) " by " (operation.principal) ", " (operation.id) } }
            @match operation.standing {
                Standing::Pending => { span { "pending" } }
                Standing::Done => { span.yes { "done" } }
                Standing::Failed => { span.no { "failed" } }
            }
        }
        @if let Some(error) = &operation.error { p.why { (error) } }
    }
}

fn ready(condition: &Condition) -> Markup {
    html! {
        @if condition.is_ready() {
            span.yes { "ready" }
        } @else {
            span.no { (condition.reason.as_str()) }
        }
    }
}

/// Why something is not ready, and since when.
fn why(condition: &Condition) -> Markup {
    let text = condition
        .message
        .as_ref()
        .or(condition.host_reason.as_ref());
    html! {
        @if !condition.is_ready() {
            p.why {
                @if let Some(text) = text { (text) " " }
                small { "since " (condition.since) }
            }
        }
    }
}
