//! The discovery document (host API §2).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What `GET /.well-known/takoform/v1beta1` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Discovery {
    /// Exactly [`crate::LANE`].
    pub api_versions: Vec<String>,
    /// The seven features; further ones are allowed.
    pub features: Features,
    /// Where the parts of the API live.
    pub endpoints: Endpoints,
}

/// Features of a host; all seven named ones are always true.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Features {
    /// Forms are served.
    pub service_forms: bool,
    /// Forms are addressed by their exact reference.
    pub exact_form_ref: bool,
    /// Fences work.
    pub optimistic_concurrency: bool,
    /// Mutations replay.
    pub idempotent_lifecycle: bool,
    /// Operations exist.
    pub operations: bool,
    /// Artifacts can be uploaded.
    pub artifact_upload: bool,
    /// Support profiles are served.
    pub support_profiles: bool,
    /// Features this crate does not know.
    #[serde(flatten)]
    pub other: BTreeMap<String, bool>,
}

/// Absolute URLs, all of the origin the caller used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Endpoints {
    /// API root.
    pub api: String,
    /// Artifact root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<String>,
    /// Operation root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operations: Option<String>,
    /// Support root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub support: Option<String>,
    /// The one endpoint that may be on another origin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oidc_issuer: Option<String>,
}

impl Discovery {
    /// The document of a host whose URLs begin with `origin`, e.g. `http://127.0.0.1:8080`.
    pub fn at(origin: &str) -> Discovery {
        let api = format!("{origin}{}", crate::API_ROOT);
        Discovery {
            api_versions: vec![crate::LANE.to_owned()],
            features: Features {
                service_forms: true,
                exact_form_ref: true,
                optimistic_concurrency: true,
                idempotent_lifecycle: true,
                operations: true,
                artifact_upload: true,
                support_profiles: true,
                other: BTreeMap::new(),
            },
            endpoints: Endpoints {
                artifacts: Some(format!("{api}/artifacts")),
                operations: Some(format!("{api}/operations")),
                support: Some(format!("{api}/support")),
                api,
                oidc_issuer: None,
            },
        }
    }
}
