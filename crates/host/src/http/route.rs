//! Routing on the escaped path (host API §1.1, Appendix A). There is no 405 and no redirect: what
//! is not in the table does not exist.

use crate::error::ApiError;
use crate::head::decode;
use notation_edge_api::ResourcePath;

macro_rules! routes {
    ($($(#[$doc:meta])* $name:ident $body:tt = $method:literal $template:literal;)*) => {
        routes!(@enum $($(#[$doc])* $name $body,)*);

        /// Name of a route, for lists that must cover all of them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RouteName { $($(#[$doc])* $name,)* }

        /// Every route behind a token: name, method, path template.
        pub const API_ROUTES: &[(RouteName, &str, &str)] =
            &[$((RouteName::$name, $method, $template),)*];
    };
    (@enum $($(#[$doc:meta])* $name:ident $body:tt,)*) => {
        routes!(@variants [] $($(#[$doc])* $name $body,)*);
    };
    (@variants [$($done:tt)*]) => {
        /// A request's route with its parameters.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub(super) enum Route { $($done)* }
    };
    (@variants [$($done:tt)*] $(#[$doc:meta])* $name:ident (), $($rest:tt)*) => {
        routes!(@variants [$($done)* $name,] $($rest)*);
    };
    (@variants [$($done:tt)*] $(#[$doc:meta])* $name:ident ($ty:ty), $($rest:tt)*) => {
        routes!(@variants [$($done)* $name($ty),] $($rest)*);
    };
    (@variants [$($done:tt)*] $(#[$doc:meta])* $name:ident { $($field:ident),* }, $($rest:tt)*) => {
        routes!(@variants [$($done)* $name { $($field: String),* },] $($rest)*);
    };
}

routes! {
    /// Availability of one Form.
    Forms () = "GET" "{api}/forms";
    /// Definition of one Form.
    FormDefinition { api_version, kind } = "GET" "{api}/form-definitions/{group}/{version}/{kind}";
    /// Judges a document.
    Validate () = "POST" "{api}/resources/validate";
    /// Mints a review.
    Prepare () = "POST" "{api}/resources/prepare";
    /// Creates or updates.
    Apply (ResourcePath) = "PUT" "{api}/resources/{group}/{version}/{kind}/{name}";
    /// Reads.
    Read (ResourcePath) = "GET" "{api}/resources/{group}/{version}/{kind}/{name}";
    /// Adopts.
    Import (ResourcePath) = "POST" "{api}/resources/{group}/{version}/{kind}/{name}/import";
    /// Looks again.
    Observe (ResourcePath) = "POST" "{api}/resources/{group}/{version}/{kind}/{name}/observe";
    /// Deletes.
    Delete (ResourcePath) = "DELETE" "{api}/resources/{group}/{version}/{kind}/{name}";
    /// Polls.
    Operation (String) = "GET" "{api}/operations/{id}";
    /// Cancels.
    Cancel (String) = "POST" "{api}/operations/{id}/cancel";
    /// Starts an upload.
    StartUpload () = "POST" "{api}/artifacts/uploads";
    /// Takes a blob.
    PutBlob { upload, digest } = "PUT" "{api}/artifacts/uploads/{upload}/blobs/{digest}";
    /// Commits an upload.
    CommitUpload (String) = "POST" "{api}/artifacts/uploads/{upload}/commit";
    /// Abandons an upload.
    AbandonUpload (String) = "DELETE" "{api}/artifacts/uploads/{upload}";
    /// Reads a manifest.
    ReadManifest (String) = "GET" "{api}/artifacts/{digest}";
    /// Asks for a blob.
    HeadBlob (String) = "HEAD" "{api}/artifacts/blobs/{digest}";
    /// Profiles of all Forms.
    SupportForms () = "GET" "{api}/support/forms";
    /// Profile of one Form.
    SupportForm { api_version, kind, definition_version } = "GET" "{api}/support/forms/{group}/{version}/{kind}/{definitionVersion}";
    /// Profile of one Interface.
    SupportInterface { name, version } = "GET" "{api}/support/interfaces/{name}/{version}";
    /// Profile of one Binding.
    SupportBinding { name, version } = "GET" "{api}/support/bindings/{name}/{version}";
    /// Names of sealed values.
    SealedNames { space, worker } = "GET" "/sealed/v1/spaces/{space}/workers/{worker}/values";
    /// Sets a sealed value.
    Seal { space, worker, key } = "PUT" "/sealed/v1/spaces/{space}/workers/{worker}/values/{key}";
    /// Removes a sealed value.
    Unseal { space, worker, key } = "DELETE" "/sealed/v1/spaces/{space}/workers/{worker}/values/{key}";
}

/// Routes without a credential, with their names; they show nothing of any tenant.
pub const OPEN_ROUTES: &[(&str, &str)] = &[
    (notation_edge_api::DISCOVERY_PATH, "Discovery"),
    ("/openapi.json", "OpenApi"),
    ("/healthz", "Alive"),
    ("/readyz", "Ready"),
];

impl Route {
    /// The route of a method and an escaped path.
    pub(super) fn of(method: &str, path: &str) -> Result<Route, ApiError> {
        let path = plain(path)?;
        let segments: Vec<&str> = path.split('/').skip(1).collect();
        // No parameter is empty: what ends with a slash is another path.
        if segments.contains(&"") {
            return Err(ApiError::no_route());
        }
        match segments.as_slice() {
            ["apis", "forms.takoform.com", "v1beta1", rest @ ..] => api(method, rest),
            [
                "sealed",
                "v1",
                "spaces",
                space,
                "workers",
                worker,
                "values",
                rest @ ..,
            ] => sealed(method, space, worker, rest),
            _ => None,
        }
        .ok_or_else(ApiError::no_route)
    }

    /// Whether the route is about sealed values and needs the scope of its own.
    pub(super) fn is_sealed(&self) -> bool {
        matches!(
            self,
            Route::SealedNames { .. } | Route::Seal { .. } | Route::Unseal { .. }
        )
    }
}

fn api(method: &str, segments: &[&str]) -> Option<Route> {
    let own = |text: &str| text.to_owned();
    Some(match (method, segments) {
        ("GET", ["forms"]) => Route::Forms,
        ("GET", ["form-definitions", group, version, kind]) => Route::FormDefinition {
            api_version: format!("{group}/{version}"),
            kind: own(kind),
        },
        ("POST", ["resources", "validate"]) => Route::Validate,
        ("POST", ["resources", "prepare"]) => Route::Prepare,
        (_, ["resources", group, version, kind, name, action @ ..]) => {
            let path = ResourcePath {
                api_version: format!("{group}/{version}"),
                kind: own(kind),
                name: own(name),
            };
            match (method, action) {
                ("PUT", []) => Route::Apply(path),
                ("GET", []) => Route::Read(path),
                ("DELETE", []) => Route::Delete(path),
                ("POST", ["import"]) => Route::Import(path),
                ("POST", ["observe"]) => Route::Observe(path),
                _ => return None,
            }
        }
        ("GET", ["operations", id]) => Route::Operation(own(id)),
        ("POST", ["operations", id, "cancel"]) => Route::Cancel(own(id)),
        ("POST", ["artifacts", "uploads"]) => Route::StartUpload,
        ("PUT", ["artifacts", "uploads", upload, "blobs", digest]) => Route::PutBlob {
            upload: own(upload),
            digest: own(digest),
        },
        ("POST", ["artifacts", "uploads", upload, "commit"]) => Route::CommitUpload(own(upload)),
        ("DELETE", ["artifacts", "uploads", upload]) => Route::AbandonUpload(own(upload)),
        ("HEAD", ["artifacts", "blobs", digest]) => Route::HeadBlob(own(digest)),
        ("GET", ["artifacts", digest]) => Route::ReadManifest(own(digest)),
        ("GET", ["support", "forms"]) => Route::SupportForms,
        ("GET", ["support", "forms", group, version, kind, definition_version]) => {
            Route::SupportForm {
                api_version: format!("{group}/{version}"),
                kind: own(kind),
                definition_version: own(definition_version),
            }
        }
        ("GET", ["support", "interfaces", name, version]) => Route::SupportInterface {
            name: own(name),
            version: own(version),
        },
        ("GET", ["support", "bindings", name, version]) => Route::SupportBinding {
            name: own(name),
            version: own(version),
        },
        _ => return None,
    })
}

fn sealed(method: &str, space: &str, worker: &str, rest: &[&str]) -> Option<Route> {
    let (space, worker) = (space.to_owned(), worker.to_owned());
    Some(match (method, rest) {
        ("GET", []) => Route::SealedNames { space, worker },
        ("PUT", [key]) => Route::Seal {
            space,
            worker,
            key: (*key).to_owned(),
        },
        ("DELETE", [key]) => Route::Unseal {
            space,
            worker,
            key: (*key).to_owned(),
        },
        _ => return None,
    })
}

/// The decoded path. An escaped slash makes no segment, and no route has one inside a segment.
pub(super) fn plain(path: &str) -> Result<String, ApiError> {
    let plain = decode(path).ok_or_else(|| ApiError::invalid("path: malformed escape"))?;
    let slashes = |text: &str| text.matches('/').count();
    if slashes(&plain) != slashes(path) {
        return Err(ApiError::no_route());
    }
    Ok(plain)
}
