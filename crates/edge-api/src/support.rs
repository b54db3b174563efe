//! Support profiles and the exact references they name (host API §24).

use crate::FormRef;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// `apiVersion` of support profiles.
pub const SUPPORT_API_VERSION: &str = "support.takoform.com/v1alpha1";

macro_rules! contract_ref {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub struct $name {
            /// Group of the contract family.
            pub api_version: String,
            /// Name.
            pub name: String,
            /// SemVer.
            pub version: String,
            /// Canonical digest of the whole definition document.
            pub schema_digest: String,
        }
    };
}

contract_ref!(
    /// Exact identity of an Interface Definition.
    InterfaceRef
);
contract_ref!(
    /// Exact identity of a Binding Definition.
    BindingRef
);

/// What a host supports of one Form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct FormSupport {
    /// [`SUPPORT_API_VERSION`].
    pub api_version: String,
    /// `FormSupport`.
    pub kind: String,
    /// The Form.
    pub form_ref: FormRef,
    /// Capabilities in the order of the definition.
    pub operations: Vec<String>,
    /// Closed vocabularies by member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supported_enums: Option<BTreeMap<String, Vec<String>>>,
    /// Upper limits; integers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<BTreeMap<String, u64>>,
}

/// Answer of `GET /support/forms`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormSupportList {
    /// One profile per installed Form.
    pub profiles: Vec<FormSupport>,
}

/// That a host implements an Interface.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct InterfaceSupport {
    /// [`SUPPORT_API_VERSION`].
    pub api_version: String,
    /// `InterfaceSupport`.
    pub kind: String,
    /// The Interface.
    pub interface_ref: InterfaceRef,
}

/// That a host implements a Binding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct BindingSupport {
    /// [`SUPPORT_API_VERSION`].
    pub api_version: String,
    /// `BindingSupport`.
    pub kind: String,
    /// The Binding.
    pub binding_ref: BindingRef,
}
