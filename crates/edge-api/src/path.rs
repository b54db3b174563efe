//! Paths of the lane. A group such as `edge.forms.takoform.com/v1beta1` is two path segments.

/// The one Host API version this crate speaks.
pub const LANE: &str = "forms.takoform.com/v1beta1";
/// Where discovery is served.
pub const DISCOVERY_PATH: &str = "/.well-known/takoform/v1beta1";
/// Prefix of every other route of the lane.
pub const API_ROOT: &str = "/apis/forms.takoform.com/v1beta1";
/// Group of the edge platform family.
pub const FAMILY: &str = "edge.forms.takoform.com/v1beta1";
/// Prefix of the operator's route for sealed values; not part of the lane.
pub const SEALED_ROOT: &str = "/sealed/v1";

/// The address of one resource inside a space.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourcePath {
    /// Group, e.g. `edge.forms.takoform.com/v1beta1`.
    pub api_version: String,
    /// Kind, e.g. `ModuleWorker`.
    pub kind: String,
    /// Name of the resource.
    pub name: String,
}

impl ResourcePath {
    /// The URL path without a query. All parts are within grammars that need no escaping.
    pub fn path(&self) -> String {
        format!(
            "{API_ROOT}/resources/{}/{}/{}",
            self.api_version, self.kind, self.name
        )
    }
}
