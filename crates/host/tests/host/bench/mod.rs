//! A server on port 0 and clients that speak to it in raw requests.

mod answer;
mod client;
mod documented;
mod documents;
mod plane;
mod process;
mod puts;
mod rows;
mod server;
mod steps;

pub use answer::*;
pub use client::*;
pub use documents::*;
pub use plane::*;
pub use process::*;
pub use puts::*;
pub use server::*;

pub const API: &str = "/apis/forms.takoform.com/v1beta1";
pub const EDGE: &str = "edge.forms.takoform.com/v1beta1";
pub const SPACE: &str = "conformance";
pub const OTHER_SPACE: &str = "conformance-alt";
/// Every handler of the runtime contract.
pub const ALL: [&str; 3] = ["fetch", "scheduled", "queue"];
/// A module that exports all of them.
pub const ALL_HANDLERS: &str = "export default {\n  async fetch() { return new Response(\"all\"); },\n  async scheduled() {},\n  async queue() {},\n};\n";
/// A module that exports one.
pub const FETCH_ONLY: &str =
    "export default { async fetch() { return new Response(\"one\"); } };\n";
