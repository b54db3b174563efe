//! The code of a version: modules with their bytes.

use bytes::Bytes;

/// A module set with its bytes.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// Name of the module whose default export holds the handlers.
    pub main_module: String,
    /// All modules.
    pub modules: Vec<BundleModule>,
}

/// One module of a [`Bundle`].
#[derive(Clone, Debug)]
pub struct BundleModule {
    /// Relative slash path.
    pub name: String,
    /// Media type, for example `application/javascript+module`.
    pub media_type: String,
    /// Content.
    pub bytes: Bytes,
}
